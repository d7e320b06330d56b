package setup

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

func someService() *service {
	return &service{
		program: "/opt/my $tools/gpg-bridge", args: []string{"--keys", "A B", "-F", "/home/me/100%/config"}, home: "/home/me",
		env: [][2]string{{"GNUPGHOME", `/home/me/"gnu<pg>"`}},
	}
}

func TestSystemdUnit(t *testing.T) {
	unit := someService().systemd()
	require.Contains(t, unit, "\nExecStart=\"/opt/my $$tools/gpg-bridge\" keep --keys \"A B\" -F \"/home/me/100%%/config\" --pin -- %i\n")
	require.Contains(t, unit, "\nEnvironment=\"GNUPGHOME=/home/me/\\\"gnu<pg>\\\"\"\n")
	require.Contains(t, unit, "\n#Environment=SSH_AUTH_SOCK=%t/ssh-agent.socket\n")
	require.NotContains(t, unit, "%!")
}

// systemd itself must have nothing to say of what setup prints.
func TestSystemdTakesTheUnit(t *testing.T) {
	verify := env.Tool(t, "systemd-analyze")
	t.Setenv("GNUPGHOME", "/home/me/a b%c")
	code, stdout, stderr := runSetup(t, "--service=systemd", "--keys", "none", "dev", "my-lab.example.org")
	require.Zero(t, code)
	require.Contains(t, stderr, "enable --now gpg-bridge@dev.service gpg-bridge@my-lab.example.org.service\n")
	dir := t.TempDir()
	file := filepath.Join(dir, "gpg-bridge@.service")
	try := func(unit string) string {
		require.NoError(t, os.WriteFile(file, []byte(unit), 0o600))
		cmd := exec.Command(verify, "--user", "verify", filepath.Join(dir, "gpg-bridge@my-lab.service"))
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+env.ShortDir(t))
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	require.Empty(t, try(stdout))
	require.NotEmpty(t, try(strings.Replace(stdout, "Restart=always", "Restart=sometimes", 1)), "systemd-analyze finds errors")
	require.NotEmpty(t, try(strings.Replace(stdout, "ExecStart=", "ExecStart=/nonexistent", 1)), "systemd-analyze finds errors")
}

func TestLaunchdAgent(t *testing.T) {
	s := someService()
	s.host = "dev"
	list := s.launchd()
	require.NotContains(t, list, "%!")
	var text []string
	decoder := xml.NewDecoder(strings.NewReader(list))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if data, ok := token.(xml.CharData); ok && strings.TrimSpace(string(data)) != "" {
			text = append(text, string(data))
		}
	}
	require.Equal(t, []string{
		"Label", "gpg-bridge.dev",
		"ProgramArguments", s.program, "keep", "--keys", "A B", "-F", "/home/me/100%/config", "--pin", "--", "dev",
		"EnvironmentVariables", "GNUPGHOME", `/home/me/"gnu<pg>"`,
		"RunAtLoad", "KeepAlive", "ThrottleInterval", "30", "AbandonProcessGroup",
		"StandardErrorPath", "/home/me/Library/Logs/gpg-bridge.dev.log",
	}, text)
}

// A service runs in another directory than its user was in.
func TestServiceNamesFilesFromAnywhere(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	code, stdout, _ := runSetup(t, "--service=systemd", "--agent-socket", "S.extra", "-F", "config", "dev")
	require.Zero(t, code)
	require.Contains(t, stdout, " --agent-socket "+filepath.Join(here, "S.extra")+" ")
	require.Contains(t, stdout, " -F "+filepath.Join(here, "config")+" ")
}

func TestServiceNamesOnlyAgentsThatLast(t *testing.T) {
	s := &service{home: "/home/me"}
	for socket, want := range map[string]bool{
		"/run/user/1000/ssh-agent.socket":    true,
		"/run/user/1000/gnupg/S.gpg-agent":   true,
		"/home/me/.1password/agent.sock":     true,
		"/home/me/.ssh/agent/s.x.agent.y":    false,
		"/tmp/ssh-abc/agent.12":              false,
		"/run/user/10001/x":                  false,
		"/private/tmp/com.apple.launchd.1/L": false,
		"":                                   false,
	} {
		require.Equal(t, want, s.lasts(socket, "/run/user/1000"), socket)
		require.False(t, s.lasts("/run/user/1000/x", ""))
	}
}
