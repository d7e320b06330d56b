package assuan

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every nonce byte that a text reader would stumble over.
const wildNonce = "\n\r\x00\xff%\n0123456\r\n\r"

func TestParseSocketFile(t *testing.T) {
	counting := [NonceSize]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	tests := []struct {
		name, content string
		want          SocketFile
	}{
		{"native", "54321\n0123456789abcdef", SocketFile{Kind: SocketNative, Port: 54321, Nonce: [NonceSize]byte([]byte("0123456789abcdef"))}},
		{"native wild nonce", "1\n" + wildNonce, SocketFile{Kind: SocketNative, Port: 1, Nonce: [NonceSize]byte([]byte(wildNonce))}},
		{"native first digit 9", "9999\n0123456789abcdef", SocketFile{Kind: SocketNative, Port: 9999, Nonce: [NonceSize]byte([]byte("0123456789abcdef"))}},
		{"native highest port", "65535\n" + strings.Repeat("\n", 16), SocketFile{Kind: SocketNative, Port: 65535, Nonce: [NonceSize]byte([]byte(strings.Repeat("\n", 16)))}},
		// The words 0x03020100 … lie in memory as 00 01 02 03 ….
		{"cygwin", "!<socket >54321 s 03020100-07060504-0b0a0908-0f0e0d0c\x00", SocketFile{Kind: SocketCygwin, Port: 54321, Nonce: counting}},
		{"cygwin without NUL", "!<socket >54321 s 03020100-07060504-0B0A0908-0F0E0D0C", SocketFile{Kind: SocketCygwin, Port: 54321, Nonce: counting}},
		{"redirect", "%Assuan%\nsocket=/run/agent\n", SocketFile{Kind: SocketRedirect, Target: "/run/agent"}},
		{"redirect shortest", "%Assuan%\nsocket=a\n", SocketFile{Kind: SocketRedirect, Target: "a"}},
		{"redirect more lines", "%Assuan%\nsocket=/run/agent\nmore\n", SocketFile{Kind: SocketRedirect, Target: "/run/agent"}},
		{"redirect CRLF is in the name", "%Assuan%\nsocket=/run/agent\r\n", SocketFile{Kind: SocketRedirect, Target: "/run/agent\r"}},
		{"redirect unexpanded", "%Assuan%\nsocket=${HOME}/$x\n", SocketFile{Kind: SocketRedirect, Target: "${HOME}/$x"}},
		{"redirect longest", "%Assuan%\nsocket=" + strings.Repeat("x", 494) + "\n", SocketFile{Kind: SocketRedirect, Target: strings.Repeat("x", 494)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseSocketFile([]byte(test.content))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestParseSocketFileRefuses(t *testing.T) {
	const nonce = "0123456789abcdef"
	tests := []struct{ name, content, reason string }{
		{"empty", "", "empty"},
		{"text", "hello\n", "no port"},
		{"native without LF", "54321", "no port"},
		{"native empty port", "\n" + nonce, "no port"},
		{"native port 0", "0\n" + nonce, "no port"},
		{"native port too high", "65536\n" + nonce, "no port"},
		{"native port of six digits", "100000\n" + nonce, "no port"},
		{"native negative port", "-1\n" + nonce, "no port"},
		{"native signed port", "+22\n" + nonce, "no port"},
		{"native leading blank", " 22\n" + nonce, "no port"},
		{"native leading zero", "022\n" + nonce, "no port"},
		{"native CRLF", "22\r\n" + nonce, "no port"},
		{"native digits of another script", "٢٢\n" + nonce, "no port"},
		{"native nonce short", "22\n" + nonce[1:], "has 15 bytes"},
		{"native nonce long", "22\n" + nonce + "\n", "has 17 bytes"},
		{"native no nonce", "22\n", "has 0 bytes"},
		{"native huge", "22\n" + strings.Repeat("x", 509), "has 509 bytes"},
		{"cygwin nothing", "!<socket >", "port, kind and secret"},
		{"cygwin four fields", "!<socket >1 s 00000000-00000000-00000000-00000000 x", "port, kind and secret"},
		{"cygwin port", "!<socket >0 s 00000000-00000000-00000000-00000000\x00", "port number"},
		{"cygwin datagram", "!<socket >1 d 00000000-00000000-00000000-00000000\x00", "not a stream"},
		{"cygwin three groups", "!<socket >1 s 00000000-00000000-00000000\x00", "four groups"},
		{"cygwin five groups", "!<socket >1 s 00000000-00000000-00000000-00000000-00000000\x00", "four groups"},
		{"cygwin short group", "!<socket >1 s 0000000-00000000-00000000-000000000\x00", "four groups"},
		{"cygwin not hex", "!<socket >1 s 0000000g-00000000-00000000-00000000\x00", "four groups"},
		{"cygwin signed", "!<socket >1 s +0000000-00000000-00000000-00000000\x00", "four groups"},
		{"cygwin two NULs", "!<socket >1 s 00000000-00000000-00000000-00000000\x00\x00", "four groups"},
		{"redirect without LF", "%Assuan%\nsocket=/run/agent", "line feed"},
		{"redirect no name", "%Assuan%\nsocket=\n", "names no socket"},
		{"redirect no name, more", "%Assuan%\nsocket=\nx\n", "names no socket"},
		{"redirect only the mark", "%Assuan%\nsocket=", "line feed"},
		{"redirect NUL", "%Assuan%\nsocket=/run/\x00agent\n", "NUL"},
		{"redirect NUL first", "%Assuan%\nsocket=\x00/run/agent\n", "NUL"},
		{"redirect CRLF mark", "%Assuan%\r\nsocket=/run/agent\n", "no port"},
		{"redirect too long", "%Assuan%\nsocket=" + strings.Repeat("x", 495) + "\n", "longer than 511"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseSocketFile([]byte(test.content))
			var malformed *SocketFileError
			require.ErrorAs(t, err, &malformed)
			require.Contains(t, malformed.Reason, test.reason)
			require.NotEmpty(t, malformed.Hint())
			require.Zero(t, got)
		})
	}
}

func TestExpandRedirect(t *testing.T) {
	env := map[string]string{"HOME": "/home/a", "EMPTY": "", "BRACED": "${HOME}", "LONG": strings.Repeat("x", 107)}
	getenv := func(name string) string { return env[name] }
	tests := []struct{ target, want string }{
		{"/run/agent", "/run/agent"},
		{"relative", "relative"},
		{"${HOME}/S", "/home/a/S"},
		{"/a${HOME}${HOME}", "/a/home/a/home/a"},
		{"/x${UNSET}y${EMPTY}z", "/xyz"},
		{"/$HOME/$/{}", "/$HOME/$/{}"},
		{"${BRACED}", "${HOME}"},
		{"/a${}b", "/ab"},
		{"${LONG}", env["LONG"]},
		{"/a}", "/a}"},
	}
	for _, test := range tests {
		got, err := ExpandRedirect(test.target, getenv)
		require.NoError(t, err, "%q", test.target)
		require.Equal(t, test.want, got)
	}
	for _, bad := range []string{"${HOME", "/a${", "${UNSET}", "${LONG}x", strings.Repeat("x", 108)} {
		_, err := ExpandRedirect(bad, getenv)
		var malformed *SocketFileError
		require.ErrorAs(t, err, &malformed, "%q", bad)
	}
}

func TestSocketFileHidesItsSecret(t *testing.T) {
	f := SocketFile{Kind: SocketNative, Port: 22, Nonce: [NonceSize]byte([]byte("secretsecretsecr"))}
	require.Equal(t, "native socket at port 22", f.String())
	require.Equal(t, `redirect to "/a\x1b"`, SocketFile{Kind: SocketRedirect, Target: "/a\x1b"}.String())
}

func TestCygwinCredentialsWire(t *testing.T) {
	c := CygwinCredentials{PID: 0x01020304, UID: 0xfffffffe, GID: 513}
	wire := c.Bytes()
	require.Equal(t, "\x04\x03\x02\x01\xfe\xff\xff\xff\x01\x02\x00\x00", string(wire[:]))
	require.Equal(t, c, ParseCygwinCredentials(wire))
}

// FuzzParseSocketFile: what is accepted is written back as it was read, but for a Cygwin file's
// trailing NUL and capital digits and a redirect's further lines.
func FuzzParseSocketFile(f *testing.F) {
	for _, seed := range []string{
		"54321\n" + wildNonce,
		"!<socket >54321 s 03020100-07060504-0b0a0908-0f0e0d0c\x00",
		"%Assuan%\nsocket=${HOME}/S.gpg-agent\n",
		"%Assuan%\nsocket=",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		parsed, err := ParseSocketFile(content)
		if err != nil {
			require.Zero(t, parsed)
			return
		}
		require.LessOrEqual(t, len(content), MaxSocketFile)
		written := parsed.Bytes()
		again, err := ParseSocketFile(written)
		require.NoError(t, err)
		require.Equal(t, parsed, again)
		switch parsed.Kind {
		case SocketNative:
			require.NotZero(t, parsed.Port)
			require.Equal(t, content, written)
		case SocketCygwin:
			require.NotZero(t, parsed.Port)
			require.True(t, strings.EqualFold(strings.TrimSuffix(string(content), "\x00"), strings.TrimSuffix(string(written), "\x00")))
		case SocketRedirect:
			require.True(t, strings.HasPrefix(string(content), string(written)))
			if name, err := ExpandRedirect(parsed.Target, strings.ToUpper); err == nil {
				require.LessOrEqual(t, len(name), maxSocketName)
			}
		default:
			t.Fatalf("kind %v", parsed.Kind)
		}
	})
}

// FuzzSocketFileBytes is the other way round: every file of the two kinds
// survives being written.
func FuzzSocketFileBytes(f *testing.F) {
	f.Add(uint16(54321), []byte(wildNonce), true)
	f.Add(uint16(1), []byte("0123456789abcdef"), false)
	f.Fuzz(func(t *testing.T, port uint16, nonce []byte, cygwin bool) {
		if port == 0 || len(nonce) != NonceSize {
			t.Skip()
		}
		file := SocketFile{Kind: SocketNative, Port: port, Nonce: [NonceSize]byte(nonce)}
		if cygwin {
			file.Kind = SocketCygwin
		}
		parsed, err := ParseSocketFile(file.Bytes())
		require.NoError(t, err)
		require.Equal(t, file, parsed)
	})
}

// FuzzExpandRedirect: every ${NAME} is replaced by what the environment has,
// once, and nothing else is changed; what comes out fits into a socket's name.
func FuzzExpandRedirect(f *testing.F) {
	f.Add("/a${HOME}/$x/${}${U", "/home/${HOME}")
	f.Fuzz(func(t *testing.T, target, value string) {
		want := regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllStringFunc(target, func(variable string) string {
			if variable == "${}" {
				return ""
			}
			return value
		})
		name, err := ExpandRedirect(target, func(string) string { return value })
		unclosed := strings.LastIndex(target, "${") > strings.LastIndex(target, "}")
		if unclosed || want == "" || len(want) > maxSocketName {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, name)
	})
}
