package sshfwd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scanAll returns what the remote gets, and the commands, in order.
func scanAll(s *escapeScanner, chunks ...string) (sent, commands string) {
	for _, chunk := range chunks {
		for keys := []byte(chunk); len(keys) > 0; {
			var data []byte
			var command byte
			data, command, keys = s.next(nil, keys)
			sent += string(data)
			if command != 0 {
				commands += string(rune(command))
			}
		}
	}
	return sent, commands
}

// The rules of process_escapes in OpenSSH's clientloop.c.
func TestEscapeSequences(t *testing.T) {
	for _, test := range []struct{ name, keys, sent, commands string }{
		{"at the start", "~.", "", "."},
		{"after CR", "ls\r~.", "ls\r", "."},
		{"after LF", "ls\n~?x", "ls\nx", "?"},
		{"not in a line", "a~.", "a~.", ""},
		{"doubled", "\r~~.", "\r~.", ""},
		{"doubled does not start a line", "~~~.", "~~.", ""},
		{"unknown", "\r~q~.", "\r~q~.", ""},
		{"unknown newline", "\r~\r~.", "\r~\r", "."},
		{"several in a row", "\r~?~B~#~&~\x1a~.", "\r", "?B#&\x1a."},
		{"a command does not end the start of a line", "~?~.", "", "?."},
		{"and no key is lost", "~?abc", "abc", "?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sent, commands := scanAll(&escapeScanner{char: '~'}, test.keys)
			require.Equal(t, test.sent, sent)
			require.Equal(t, test.commands, commands)
		})
	}
	sent, commands := scanAll(&escapeScanner{char: '.'}, "\r..\r.?")
	require.Equal(t, "\r.\r", sent, "an escape character that is a command's")
	require.Equal(t, "?", commands)
}

// It makes no difference how the keys are split into reads.
func FuzzEscapeScanner(f *testing.F) {
	f.Add([]byte("ls\r~?~~x\n~.rest"), byte(3))
	f.Add([]byte("~~~~\r~"), byte(1))
	f.Fuzz(func(t *testing.T, keys []byte, cut byte) {
		sent, commands := scanAll(&escapeScanner{char: '~'}, string(keys))
		at := min(int(cut), len(keys))
		cutSent, cutCommands := scanAll(&escapeScanner{char: '~'}, string(keys[:at]), string(keys[at:]))
		require.Equal(t, sent, cutSent)
		require.Equal(t, commands, cutCommands)
		require.LessOrEqual(t, len(sent), len(keys), "nothing is made up")
		if !bytes.ContainsRune(keys, '~') {
			require.Equal(t, string(keys), sent)
			require.Empty(t, commands)
		}
	})
}

func TestEscapeChar(t *testing.T) {
	for value, want := range map[string]byte{"~": '~', "%": '%', "^]": 0x1d, "^a": 1} {
		char, ok := EscapeChar(value)
		require.True(t, ok)
		require.Equal(t, want, char, "%q", value)
	}
	for _, value := range []string{"none", "", "abc"} {
		_, ok := EscapeChar(value)
		require.False(t, ok, "%q", value)
	}
}

func TestEscapeHelpNamesOnlyWhatThereIs(t *testing.T) {
	escape := &Escape{Char: 0x1d}
	require.True(t, strings.HasPrefix(escape.help(), "^]?\r\nSupported escape sequences:\r\n ^].   - terminate connection\r\n"))
	require.NotContains(t, escape.help(), "suspend")
	escape.Suspend = func() {}
	require.Contains(t, escape.help(), " ^]^Z  - suspend this program\r\n")
}

func TestKeyQueueIsBounded(t *testing.T) {
	q := newKeyQueue()
	q.put(make([]byte, maxTyped))
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		q.put([]byte("x"))
	}()
	buf := make([]byte, maxTyped)
	n, err := q.Read(buf)
	require.NoError(t, err)
	require.Equal(t, maxTyped, n)
	requireClosed(t, "room for the next key", blocked)
	q.end()
	n, err = q.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "x", string(buf[:n]))
	_, err = q.Read(buf)
	require.Error(t, err)
	q.put(make([]byte, 2*maxTyped)) // does not wait
}
