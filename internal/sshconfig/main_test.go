package sshconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gpg-bridge/internal/testkit/env"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ourLine = "ProxyCommand gpg-bridge proxy --alias %n --user %r %h %p"

func parse(t testing.TB, text string) *Text {
	t.Helper()
	parsed, err := Parse([]byte(text))
	require.NoError(t, err)
	return parsed
}

// meaning is what the real ssh reads from a text for a host, line by line.
func meaning(t *testing.T, text []byte, host string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, err := exec.Command(env.Tool(t, "ssh"), "-G", "-F", file, host).Output()
	require.NoError(t, err, "%s", text)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// withoutProxy drops from ssh's answer what our lines may change.
func withoutProxy(lines []string) (rest []string) {
	for _, line := range lines {
		if !strings.HasPrefix(line, "proxycommand ") && !strings.HasPrefix(line, "proxyjump ") {
			rest = append(rest, line)
		}
	}
	return rest
}
