package assuan

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseCommand(t *testing.T) {
	for line, want := range map[string]struct{ verb, args string }{
		"PKSIGN\n":                   {"PKSIGN", ""},
		"PKSIGN\r\n":                 {"PKSIGN", ""},
		"PKSIGN\r\r\n":               {"PKSIGN\r", ""},
		"PKSIGN":                     {"PKSIGN", ""},
		"PKSIGN \t\n":                {"PKSIGN", ""},
		"pksign -- nonce\n":          {"pksign", "-- nonce"},
		"OPTION\tttyname=/dev\n":     {"OPTION", "ttyname=/dev"},
		"SETKEYDESC \t a%20b \t\r\n": {"SETKEYDESC", "a%20b \t"},
		"":                           {"", ""},
		"\n":                         {"", ""},
		" \n":                        {"", ""},
		" NOP\n":                     {"", "NOP"},
		"\tNOP\n":                    {"", "NOP"},
		"NOP\x00x\n":                 {"NOP\x00x", ""},
		"#\n":                        {"#", ""},
	} {
		c := ParseCommand([]byte(line))
		require.Equal(t, want.verb, string(c.Verb), "%q", line)
		require.Equal(t, want.args, string(c.Args), "%q", line)
		require.Equal(t, line, string(c.Line))
	}
}

// TestKeygrip: it is the one that the agent takes, whatever stands beside it.
func TestKeygrip(t *testing.T) {
	const grip, other = "0123456789ABCDEF0123456789abcdef01234567", "1111111111111111111111111111111111111111"
	for line, want := range map[string]string{
		"SIGKEY " + grip + "\n":                 grip,
		"sigkey\t" + grip + " \r\n":             grip,
		"SETKEY --another " + grip + "\n":       grip,
		"KEYINFO --data \t--fpr " + grip:        grip,
		"SIGKEY " + grip + " " + other + "\n":   grip,
		"SIGKEY -- " + grip + "\n":              grip,
		"SIGKEY --" + other + " " + grip + "\n": grip,
		"SIGKEY x " + grip + "\n":               "",
		"SIGKEY -x " + grip + "\n":              "",
		"SIGKEY " + grip[1:] + "\n":             "",
		"SIGKEY " + grip + "0\n":                "",
		"SIGKEY " + grip[1:] + "g\n":            "",
		"SIGKEY " + grip[1:] + "\x1b\n":         "",
		"SIGKEY " + grip + "\r\r\n":             "",
		"SIGKEY " + grip + ",\n":                "",
		"SIGKEY\n":                              "",
		"SIGKEY --another\n":                    "",
		"SIGKEY --another --" + grip + "\n":     "",
		grip + "\n":                             "",
		" SIGKEY " + grip + "\n":                "",
	} {
		require.Equal(t, want, string(ParseCommand([]byte(line)).Keygrip()), "%q", line)
	}
}

func TestCommandIs(t *testing.T) {
	for verb, want := range map[string]bool{
		"INPUT": true, "input": true, "iNpUt": true,
		"INPU": false, "INPUTS": false, "": false, " INPUT": false,
		"\u0131NPUT": false, // a dotless i, which Unicode folds to I
		"INPU\x14":   false, // a T but for the bits that make it a letter
	} {
		require.Equal(t, want, Command{Verb: []byte(verb)}.Is("INPUT"), "%q", verb)
	}
}

// TestASCIIByteByByte holds the two rules about single bytes for all of them:
// only ASCII letters have a case, and only what C's isxdigit knows is a digit.
func TestASCIIByteByByte(t *testing.T) {
	for b := range 256 {
		c := byte(b)
		isLetter := 'a' <= c|0x20 && c|0x20 <= 'z'
		for _, word := range []string{"A", "B", "Y", "Z"} {
			want := c == word[0] || isLetter && c&^0x20 == word[0]
			require.Equal(t, want, Command{Verb: []byte{c}}.Is(word), "%q as %s", c, word)
		}
		_, err := strconv.ParseUint(string(rune(c)), 16, 8)
		require.Equal(t, err == nil, EscapesValid([]byte{'D', ' ', '%', c, '0', '\n'}), "%%%c0", c)
		require.Equal(t, err == nil, EscapesValid([]byte{'D', ' ', '%', '0', c, '\n'}), "%%0%c", c)
	}
}

func TestAnswerOf(t *testing.T) {
	for line, want := range map[string]Answer{
		"D x\n": AnswerData, "d x\n": AnswerData, "D \n": AnswerData, "D END\n": AnswerData, "D \x00\n": AnswerData,
		"D\n": AnswerUnexpected, "D\tx\n": AnswerUnexpected, "Dx\n": AnswerUnexpected, " D x\n": AnswerUnexpected,

		"END\n": AnswerEnd, "end\n": AnswerEnd, "eNd\r\n": AnswerEnd, "END x\n": AnswerEnd, "END": AnswerEnd,
		"ENDX\n": AnswerUnexpected, "END\t\n": AnswerUnexpected, "END\r\r\n": AnswerUnexpected, "EN\n": AnswerUnexpected,

		"CAN\n": AnswerCancel, "can\n": AnswerCancel, "CANCEL\n": AnswerCancel, "Canada x\n": AnswerCancel,
		"CA\n": AnswerUnexpected,

		"\n": AnswerNothing, "\r\n": AnswerNothing, "#\n": AnswerNothing, "# D x\n": AnswerNothing,
		"\r\r\n": AnswerUnexpected, // a CR is not nothing

		"NOP\n": AnswerUnexpected, "BYE\n": AnswerUnexpected, "RESET\n": AnswerUnexpected,
		"OK\n": AnswerUnexpected, " \n": AnswerUnexpected, "\x00\n": AnswerUnexpected,
	} {
		require.Equal(t, want, AnswerOf([]byte(line)), "%q", line)
	}
}

func TestEscapesValid(t *testing.T) {
	for line, want := range map[string]bool{
		"D abc\n": true, "D %25\n": true, "D %0D%0A\n": true, "D %aF\n": true, "D %00%\n": false,
		"D %\n": false, "D %\r\n": false, "D %2\n": false, "D %2\r\n": false, "D %2": false, "D %": false,
		"D %%25\n": false, "D %25%\n": false, "D %2%5\n": false, "D %g0\n": false, "D %0g\n": false,
		"D % 5\n": false, "D %25 100%25\n": true, "\n": true, "": true,
		"D %0\n0":       false, // an LF is no digit
		"D %\x00\x00\n": false, "D %`0\n": false, "D %@0\n": false, "D %/0\n": false, "D %:0\n": false,
	} {
		require.Equal(t, want, EscapesValid([]byte(line)), "%q", line)
	}
}

// TestNothingAllocates pins the promise of the package doc.
func TestNothingAllocates(t *testing.T) {
	line := []byte("D some data %25 with an escape\n")
	var b LineBuffer
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.Commit(copy(b.Space(), line))
		got, err := b.Next()
		if err != nil || KindOf(got) != KindData || AnswerOf(got) != AnswerData || !EscapesValid(got) ||
			Ignorable(got) || ParseCommand(got).Is("BYE") || ParseCommand(got).Keygrip() != nil || b.More() != true {
			panic("not the line that went in")
		}
		b.Take(got)
	}))
}
