package assuan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKindOf(t *testing.T) {
	for line, want := range map[string]Kind{
		"":                             KindComment,
		"\n":                           KindComment,
		"\r\n":                         KindComment,
		"#\n":                          KindComment,
		"# OK\n":                       KindComment,
		"OK\n":                         KindOK,
		"OK\r\n":                       KindOK,
		"OK Pleased to meet you\n":     KindOK,
		"OK":                           KindOK,
		"OK \n":                        KindOK,
		"OKAY\n":                       KindInvalid,
		"OK\r\r\n":                     KindInvalid,
		"OK\t\n":                       KindInvalid,
		"OK\x00\n":                     KindInvalid,
		"ok\n":                         KindInvalid,
		" OK\n":                        KindInvalid,
		"ERR 67109115 Forbidden\n":     KindERR,
		"ERR\n":                        KindERR,
		"ERROR\n":                      KindInvalid,
		"INQUIRE CIPHERTEXT\n":         KindInquire,
		"INQUIRE\n":                    KindInquire,
		"INQUIRED\n":                   KindInvalid,
		"D \n":                         KindData,
		"D OK\n":                       KindData,
		"D ERR 1\n":                    KindData,
		"D \x00\r\xff\n":               KindData,
		"D\n":                          KindInvalid, // a keyword, and yet not without its space
		"D\tx\n":                       KindInvalid,
		"d x\n":                        KindInvalid,
		"S\n":                          KindStatus,
		"S INQUIRE_MAXLEN 4096\n":      KindStatus,
		"S OK\n":                       KindStatus,
		"SX\n":                         KindInvalid,
		"END\n":                        KindData,
		"ENDX\n":                       KindInvalid,
		"CAN\n":                        KindInvalid,
		"\x00\n":                       KindInvalid,
		"HTTP/1.0 400 Bad Request\r\n": KindInvalid,
	} {
		require.Equal(t, want, KindOf([]byte(line)), "%q", line)
	}
}

func TestKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range numKinds {
		require.NotEmpty(t, k.String())
		require.False(t, seen[k.String()], "%s twice", k)
		seen[k.String()] = true
		require.Equal(t, k == KindOK || k == KindERR || k == KindInquire, k.Final(), "%s", k)
		require.Equal(t, k == KindOK || k == KindERR, k.Complete(), "%s", k)
	}
}

func TestTrim(t *testing.T) {
	for line, want := range map[string]string{
		"":         "",
		"\n":       "",
		"\r\n":     "",
		"\r":       "\r", // no LF: not the end of a line
		"\r\r\n":   "\r",
		"NOP\n":    "NOP",
		"NOP\r\n":  "NOP",
		"NOP\r":    "NOP\r",
		"NOP \n":   "NOP ",
		"a\rb\r\n": "a\rb",
		"a\n\n":    "a\n",
	} {
		require.Equal(t, want, string(Trim([]byte(line))), "%q", line)
	}
}

func TestIgnorable(t *testing.T) {
	for line, want := range map[string]bool{
		"\n": true, "\r\n": true, "#\n": true, "# NOP\n": true, "#NOP\r\n": true,
		"\r\r\n": false, " \n": false, " #\n": false, "NOP\n": false, "D #\n": false, "\x00\n": false,
	} {
		require.Equal(t, want, Ignorable([]byte(line)), "%q", line)
	}
}

func TestErrorCode(t *testing.T) {
	for line, want := range map[string]int{
		ErrNotImplemented:     4<<24 | 69,
		ErrNoAgent:            4<<24 | 77,
		ErrForbidden:          4<<24 | 251,
		ErrUnexpected:         4<<24 | 274,
		ErrUnknown:            4<<24 | 275,
		ErrSyntax:             4<<24 | 276,
		ErrLeadingSpace:       4<<24 | 276,
		"ERR 67109115\r\n":    67109115,
		"ERR 67109115":        67109115,
		"ERR 4294967295 x\n":  4294967295,
		"ERR 4294967296 x\n":  0,
		"ERR -1 x\n":          0,
		"ERR x\n":             0,
		"ERR\n":               0,
		"ERR  1\n":            0,
		"OK 67109115\n":       0,
		"D ERR 67109115\n":    0,
		"ERROR 67109115 x\n":  0,
		"err 67109115 x\n":    0,
		"ERR 67109115\tand\n": 0,
	} {
		require.Equal(t, want, ErrorCode([]byte(line)), "%q", line)
	}
}

// TestOwnAnswers pins what gpg needs to see in the lines that we send in the
// agent's place.
func TestOwnAnswers(t *testing.T) {
	for _, line := range []string{ErrNotImplemented, ErrNoAgent, ErrForbidden, ErrUnexpected, ErrUnknown, ErrSyntax, ErrLeadingSpace} {
		require.Equal(t, KindERR, KindOf([]byte(line)), line)
		require.Equal(t, 4, ErrorCode([]byte(line))>>24, "the source of %q", line)
		require.LessOrEqual(t, len(line), MaxLine)
		require.Equal(t, byte('\n'), line[len(line)-1])
	}
}
