package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// Where PAM shows the message of the day, a login shell has it once, before the
// shell's own first output, as with ssh; a command has none, and neither has a shell
// without a terminal, or one of a user who wants none.
func TestMessageOfTheDay(t *testing.T) {
	s := stage{sshd: sshd.Config{Options: []string{"UsePAM yes", "PrintMotd no"}}}.set(t)
	motd, err := os.ReadFile("/etc/motd")
	if config, _ := os.ReadFile("/etc/pam.d/sshd"); err != nil || !strings.Contains(string(config), "pam_motd.so") {
		env.Missing(t, "no pam_motd in /etc/pam.d/sshd, or no /etc/motd")
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(motd)), "\n")
	require.NotEmpty(t, line)
	s.host.WriteFile(t, ".bash_profile", []byte("echo the shell; exit 0\n"), 0o600)

	native, err := s.sshd.SSH("-tt", "host").CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(native), line, "ssh shows it")
	shell := s.run(t, "-tt", "host")
	require.Zero(t, shell.code, "%s", shell.stderr)
	require.Equal(t, 1, strings.Count(shell.stdout, line), shell.stdout)
	require.Less(t, strings.Index(shell.stdout, line), strings.Index(shell.stdout, "the shell"))
	lines := func(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r", "")) }
	require.Equal(t, lines(string(native)), lines(shell.stdout), "as ssh")

	require.NotContains(t, s.run(t, "-tt", "host", "echo on").stdout, line)
	require.NotContains(t, s.run(t, "host").stdout, line)
	s.host.WriteFile(t, ".hushlogin", nil, 0o600)
	require.NotContains(t, s.run(t, "-tt", "host").stdout, line)
}
