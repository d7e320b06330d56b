package sshfwd

import (
	"encoding/binary"
	"encoding/pem"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// FuzzKexTap: what a server says before it is known makes us hold little, and
// the reply that is kept does not depend on how the network has cut it.
func FuzzKexTap(f *testing.F) {
	packet := func(payload string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(payload)+1+4))) + "\x04" + payload + "pppp"
	}
	f.Add([]byte("hello\r\nSSH-2.0-x\r\n"+packet("\x14kexinit")+packet("\x1freply")+packet("\x15")+"encrypted"), uint8(3))
	f.Add([]byte("SSH-2.0-x\n"+packet("\x21gex")+"\xff\xff\xff\xff"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		var whole, cut kexTap
		whole.feed(data)
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			cut.feed(rest[:n])
			rest = rest[n:]
			require.LessOrEqual(t, len(cut.data), maxTapped)
			require.False(t, cut.over && cut.data != nil, "held for nothing")
		}
		require.Equal(t, whole.reply, cut.reply)
		require.Equal(t, whole.over, cut.over)
		require.LessOrEqual(t, len(cut.reply), len(data))
		_, err := cut.binding([]byte("session"))
		require.Error(t, err, "nobody has signed that")
	})
}

// FuzzPrintable: what is shown of a server's text is printable, loses nothing
// that was, and is at most four times as long.
func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"plain\ttext\n", "\x1b]0;title\x07\u202eevil\u009b2J\xff\r\n\r", "é漢字\u00ad\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, shown := range []string{Printable(text), printableLine(text)} {
			require.True(t, utf8.ValidString(shown))
			for _, r := range shown {
				require.True(t, unicode.IsPrint(r) || r == '\n' || r == '\t', "%q of %q", shown, text)
			}
			require.LessOrEqual(t, len(shown), 4*len(text))
		}
		require.NotContains(t, printableLine(text), "\n")
		if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(text) {
			require.Equal(t, text, printableLine(text))
		}
	})
}

// FuzzExit: how a session's process ended, in whatever words, is one status
// that a process can have.
func FuzzExit(f *testing.F) {
	f.Add("exit-status", []byte{0, 0, 1, 2})
	f.Add("exit-signal", ssh.Marshal(struct {
		Signal            string
		Dumped            bool
		Message, Language string
	}{"KILL", true, "\x1b", ""}))
	f.Fuzz(func(t *testing.T, kind string, payload []byte) {
		var e exit
		e.note(&ssh.Request{Type: kind, Payload: payload})
		require.GreaterOrEqual(t, e.code(), 0)
		if err := e.err(); err != nil {
			require.NotContains(t, err.Error(), "\x1b")
		}
		require.True(t, e.known || e == exit{})
	})
}

// FuzzKeyFile: whatever a key file holds, there is a private key with its
// public half, an encrypted one, a certificate of a user, or an error.
func FuzzKeyFile(f *testing.F) {
	block, err := ssh.MarshalPrivateKey(fuzzPrivate(1), "comment")
	require.NoError(f, err)
	f.Add(pem.EncodeToMemory(block))
	block, err = ssh.MarshalPrivateKeyWithPassphrase(fuzzPrivate(1), "comment", []byte("x"))
	require.NoError(f, err)
	f.Add(pem.EncodeToMemory(block))
	f.Add([]byte(authorized(fuzzKey(f, 1)) + " comment"))
	f.Add([]byte(authorized(fuzzCert(f, 7))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if key, comment := parsePublicKey(data); key == nil {
			require.Empty(t, comment)
		}
		k := &keyFile{path: "f"}
		switch err := k.parse(append([]byte(nil), data...)); {
		case err != nil:
			require.Nil(t, k.private)
		case k.encrypted == nil:
			require.NotNil(t, k.private)
			require.True(t, sameKey(k.public, k.private.PublicKey()))
		default:
			require.Nil(t, k.private)
		}
	})
}
