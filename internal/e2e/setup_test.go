package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// A desk is an account that sits in front of a laptop of its own, where
// gpg-bridge is installed: ssh finds its files by the user database, so that only
// a real account has them.
type desk struct {
	*sshd.Account
	program string
}

func newDesk(t *testing.T, path string) *desk {
	t.Helper()
	t.Parallel()
	env.Tool(t, "ssh")
	d := &desk{sshd.NewAccount(t, sshd.AccountConfig{}), path}
	d.Mkdir(t, filepath.Dir(path))
	code, err := os.ReadFile(program)
	require.NoError(t, err)
	d.WriteFile(t, path, code, 0o755)
	return d
}

// setup runs gpg-bridge setup with HOME astray.
func (d *desk) setup(t *testing.T, args ...string) result {
	t.Helper()
	cmd := d.Command(d.Path(d.program), append([]string{"setup"}, args...)...)
	for i, entry := range cmd.Env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			cmd.Env[i] = "PATH=" + d.Path("bin") + ":" + path
		}
	}
	cmd.Env = append(cmd.Env, "HOME=/nonexistent")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := runWithin(cmd, patience)
	if _, exited := err.(*exec.ExitError); !exited {
		require.NoError(t, err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// proxyCommand is what the account's ssh would run.
func (d *desk) proxyCommand(t *testing.T, host string) string {
	t.Helper()
	for line := range strings.Lines(d.Run(t, "ssh -G "+host)) {
		if command, ok := strings.CutPrefix(line, "proxycommand "); ok {
			return strings.TrimSpace(command)
		}
	}
	return ""
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

// A new account has no ~/.ssh. ssh takes what setup makes, which is strict with
// the files' modes.
func TestSetupForANewAccount(t *testing.T) {
	d := newDesk(t, "bin/gpg-bridge")
	r := d.setup(t, "dev", "lab")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, os.FileMode(0o700), mode(t, d.Path(".ssh")))
	require.Equal(t, os.FileMode(0o600), mode(t, d.Path(".ssh/config")))
	require.Equal(t, d.Path("bin/gpg-bridge")+" proxy --alias %n --user %r %h %p", d.proxyCommand(t, "dev"), "by its path, though it is in PATH")
	require.Equal(t, d.proxyCommand(t, "dev"), d.proxyCommand(t, "lab"))
	require.Empty(t, d.proxyCommand(t, "web"))
	r = d.setup(t, "--undo")
	require.Zero(t, r.code, r.stderr)
	require.NoFileExists(t, d.Path(".ssh/config"))
}

// Those who keep their files elsewhere have a link; ssh still takes what is
// behind it, and it is still theirs.
func TestSetupThroughALink(t *testing.T) {
	d := newDesk(t, "tools of mine/gpg-bridge")
	const before = "Include more\nUser me\n\nHost dev\n  ProxyJump gate"
	d.WriteFile(t, "dotfiles/ssh", []byte(before), 0o644)
	d.WriteFile(t, ".ssh/more", []byte("Host lab\n  Port 2222\n"), 0o600)
	d.Run(t, "ln -s ../dotfiles/ssh .ssh/config")
	whole := d.Run(t, "ssh -G lab; ssh -G web")

	r := d.setup(t, "dev")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "\n+Host dev\n")
	require.Equal(t, "'"+d.Path("tools of mine/gpg-bridge")+"' proxy -J gate --alias %n --user %r %h %p", d.proxyCommand(t, "dev"))
	require.Equal(t, whole, d.Run(t, "ssh -G lab; ssh -G web"))
	require.Equal(t, d.Name+" 644 regular file\n", d.Run(t, "stat -c '%U %a %F' dotfiles/ssh"))
	require.Equal(t, d.Name+" 600\n", d.Run(t, "stat -c '%U %a' dotfiles/ssh.gpg-bridge.bak"))
	require.Equal(t, "../dotfiles/ssh\n", d.Run(t, "readlink .ssh/config"))

	r = d.setup(t, "dev")
	require.Zero(t, r.code)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, "nothing to change")
	require.Zero(t, d.setup(t, "--undo", "dev").code)
	require.Equal(t, before, string(d.ReadFile(t, ".ssh/config")))
}

// Where nothing can be written the change is shown, so that it can be made by
// hand, and nothing is lost.
func TestSetupWhereNothingCanBeWritten(t *testing.T) {
	d := newDesk(t, "bin/gpg-bridge")
	d.WriteFile(t, ".ssh/config", []byte("User me\n"), 0o600)
	d.Run(t, "chmod 500 .ssh")
	r := d.setup(t, "dev")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "+    ProxyCommand "+d.Path("bin/gpg-bridge")+" proxy")
	require.Regexp(t, `(?s)no copy of it can be kept: .*permission denied\n.*put the lines in`, r.stderr)
	require.Equal(t, "User me\n", string(d.ReadFile(t, ".ssh/config")))
	require.Equal(t, "config\n", d.Run(t, "ls -A .ssh"))
}

// What setup writes is what plain ssh, and gpg-bridge ssh, get along with.
func TestSetupThenSSH(t *testing.T) {
	s := stage{}.set(t)
	r := launch(t, s.laptop, nil, "setup", "-F", s.sshd.ConfigFile, "host").wait(t)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "+    ProxyCommand "+program+" proxy -F "+s.sshd.ConfigFile+" --alias %n --user %r %h %p\n")

	ssh := s.sshd.SSH("host", "echo hello")
	ssh.Env = append(s.laptop.Env(), "GPG_BRIDGE=off") // the bridge is another test's
	out, err := ssh.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "hello\n", string(out))
	s.runSigning(t)
}

// Plain ssh gets along with what setup has written wherever it is started: by cron
// or a desktop it has another PATH. A package manager's link is what is written, and
// no shell and no ssh reads its path otherwise.
func TestSetupThenSSHWithAnotherPath(t *testing.T) {
	s := stage{}.set(t)
	for _, name := range []string{"bin", "it's 100% \"mine\", $HOME"} {
		dir := filepath.Join(env.ShortDir(t), name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.Symlink(program, filepath.Join(dir, "gpg-bridge")))
		config := filepath.Join(env.ShortDir(t), "config")
		before, err := os.ReadFile(s.sshd.ConfigFile)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(config, before, 0o600))
		run := func(args ...string) result {
			cmd := exec.Command(filepath.Join(dir, "gpg-bridge"), append([]string{"setup", "-F", config}, args...)...)
			cmd.Args[0], cmd.Env = "gpg-bridge", []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			return launchAs(t, cmd, s.laptop, nil).wait(t)
		}
		r := run("host")
		require.Zero(t, r.code, r.stderr)
		require.NotContains(t, r.stdout, program)
		require.Regexp(t, `(?m)^\+    ProxyCommand ['"]?/`, r.stdout)

		for _, shell := range []string{"sh", "bash"} {
			ssh := exec.Command(env.Tool(t, "ssh"), "-F", config, "host", "echo hello")
			ssh.Env = append(s.laptop.Env(), "GPG_BRIDGE=off", "PATH=/usr/bin:/bin", "SHELL="+env.Tool(t, shell))
			out, err := ssh.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, "hello\n", string(out))
		}
		r = run("host")
		require.Contains(t, r.stderr, "nothing to change")
		require.Zero(t, run("--undo").code)
		after, err := os.ReadFile(config)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))
	}
}

// What the printed unit runs is a bridge, until systemd ends it.
func TestServiceIsABridge(t *testing.T) {
	s := stage{}.set(t)
	r := launch(t, s.laptop, nil, "setup", "--service=systemd", "-F", s.sshd.ConfigFile, "host").wait(t)
	require.Zero(t, r.code, r.stderr)
	_, line, found := strings.Cut(r.stdout, "\nExecStart=")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(strings.ReplaceAll(line, "%i", "host"))
	require.Equal(t, program, words[0])

	p := launch(t, s.laptop, nil, words[1:]...)
	p.waitFor(t, &p.stderr, serving)
	s.sign(t)
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t).code)
}
