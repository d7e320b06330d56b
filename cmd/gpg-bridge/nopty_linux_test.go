package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshd"
)

// If the host grants no terminal, a shell runs without one, and a command for which the user
// asked for a terminal does not run, as with ssh. The terminal here stays as it was.
func TestRefusedTerminalIsAsWithSSH(t *testing.T) {
	const words = "PTY allocation request failed on channel 0"
	hosts := map[string]*host{
		"no-pty":       newHostWith(t, sshd.Config{KeyOptions: "no-pty"}),
		"PermitTTY no": newHostWith(t, sshd.Config{Options: []string{"PermitTTY no", "StreamLocalBindUnlink yes"}}),
	}
	for _, test := range []struct {
		name string
		args []string
		keys string // typed when the message has come and the modes are restored
	}{
		{name: "-t", args: []string{"-t", "host", "test -t 0; echo $?"}},
		{name: "-tt", args: []string{"-tt", "host", "exit 3"}},
		{name: "-t shell", args: []string{"-t", "host"}},
		{name: "RequestTTY", args: []string{"-o", "RequestTTY=yes", "host", "exit 3"}},
		{name: "-q", args: []string{"-q", "-t", "host", "exit 3"}},
		{name: "LogLevel ERROR", args: []string{"-o", "LogLevel=ERROR", "-t", "host", "exit 3"}},
		{name: "LogLevel FATAL", args: []string{"-o", "LogLevel=FATAL", "-t", "host", "exit 3"}},
		{name: "lines", args: []string{"host"}, keys: "echo typed\rexit 4\r"},
		{name: "end of file", args: []string{"host"}, keys: "echo typed\r\x04"},
		{name: "escape", args: []string{"host"}, keys: "\r~.\r"},
		{name: "interrupt", args: []string{"host"}, keys: "\x03"},
	} {
		for name, h := range hosts {
			t.Run(test.name+", "+name, func(t *testing.T) {
				t.Parallel()
				run := func(ours bool) ending {
					s := onScreen(t, h.command(t, ours, test.args...))
					before := s.modes()
					if test.keys != "" {
						s.expect(words, 1)
						eventually(t, "the modes of before", func() bool { return before == s.modes() })
						s.keys(test.keys)
					}
					status, text := s.waitKeepingModes(before)
					return ending{status: status, stdout: plain(text)}
				}
				require.Equal(t, run(false), run(true))
			})
		}
	}
}
