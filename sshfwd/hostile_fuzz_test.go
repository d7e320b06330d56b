package sshfwd

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// FuzzExit: whatever the server reports about the end of a process, the result is a status
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
