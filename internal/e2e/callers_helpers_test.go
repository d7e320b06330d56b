package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// callers is a scene of programs that call ssh. Each is run by a script of sh that finds in
//
//	$SSH    one program that is ssh: the real one, or ours
//	$CONF   the ssh_config of `host`
//	$PORT   host's port, $NOPORT an ssh_config that names another one
//	$FREE   a port that nobody listens on
//	$LOGIN  the account on the host
//	$HERE   an empty directory, where the script begins
//	$THERE  an empty directory of the account's on the host
//
// and in PATH no other ssh before the real one.
type callers struct {
	*scene
	bin, elsewhere string
	runs           int
}

// callersOf makes the scene. The host's `sign` signs "hello" into the file that it is told.
func callersOf(t *testing.T) *callers {
	t.Helper()
	c := &callers{scene: stage{sshd: sshd.Config{Options: []string{"AcceptEnv GIT_PROTOCOL LANG LC_*"}}}.set(t), bin: env.ShortDir(t)}
	c.write(t, "bridge", "#!/bin/sh\nexec "+program+` ssh "$@"`+"\n")
	config, err := os.ReadFile(c.sshd.ConfigFile)
	require.NoError(t, err)
	c.elsewhere = c.write(t, "elsewhere", strings.Replace(string(config), fmt.Sprintf("Port %d\n", c.sshd.Port), "Port 9\n", 1))
	c.host.WriteFile(t, "sign", []byte("#!/bin/sh\necho hello | gpg --batch --no-tty -u "+c.key.Fingerprint+` -b -o "$1"`+"\n"), 0o700)
	return c
}

func (c *callers) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(c.bin, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// first is a PATH in which ssh is two lines of sh that run another one. Options that a caller
// cannot be told stand there, too.
func (c *callers) first(t testing.TB, ssh string) string {
	t.Helper()
	dir := filepath.Join(c.bin, filepath.Base(ssh)+".first")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	c.write(t, filepath.Base(dir)+"/ssh", "#!/bin/sh\nexec "+ssh+" -F "+c.sshd.ConfigFile+` "$@"`+"\n")
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

// A call is how a script ended, and which files it left here and there.
type call struct {
	result
	here, there string
}

// call runs a script with ssh in the place of $SSH.
func (c *callers) call(t testing.TB, ssh, script string, environ ...string) call {
	t.Helper()
	c.runs++
	there := fmt.Sprintf("there%d", c.runs)
	c.host.Mkdir(t, there)
	here := t.TempDir()
	cmd := exec.Command(env.Tool(t, "sh"), "-c", script)
	cmd.Dir = here
	cmd.Env = append([]string{
		"SSH=" + ssh, "CONF=" + c.sshd.ConfigFile, fmt.Sprint("PORT=", c.sshd.Port), "NOPORT=" + c.elsewhere,
		"FREE=" + freePort(t), "LOGIN=" + c.host.Name, "HERE=" + here, "THERE=" + c.host.Path(there), "BIN=" + c.bin,
	}, environ...)
	r := launchAs(t, cmd, c.laptop, nil).wait(t)
	return call{
		result: result{stdout: c.plain(r.stdout, here, there), stderr: c.plain(r.stderr, here, there), code: r.code},
		here:   tree(t, here), there: tree(t, c.host.Path(there)),
	}
}

// plain replaces what is another in each run. ssh ends its own lines as a terminal has it.
func (c *callers) plain(text, here, there string) string {
	return strings.NewReplacer(here, "HERE", c.host.Path(there), "THERE", "\r\n", "\n").Replace(text)
}

// tree is the beginning of each file of a directory, but for git's own.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasSuffix(path, ".git") {
			return fs.SkipDir
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %d %.100q\n", strings.TrimPrefix(path, dir), len(data), data)
		return err
	}))
	return all.String()
}

// ours is our ssh as one program.
func (c *callers) ours() string { return filepath.Join(c.bin, "bridge") }

// same runs a script with the real ssh and with ours, requires that it ends in the same way,
// and returns how.
func (c *callers) same(t testing.TB, script string, environ ...string) call {
	t.Helper()
	want := c.call(t, env.Tool(t, "ssh"), script, environ...)
	got := c.call(t, c.ours(), script, environ...)
	require.Equal(t, want, got, "%s", script)
	return got
}

// sameNamed is same with both under the name of ssh, first in PATH.
func (c *callers) sameNamed(t testing.TB, script string) call {
	t.Helper()
	want := c.call(t, "ssh", script, c.first(t, env.Tool(t, "ssh")))
	got := c.call(t, "ssh", script, c.first(t, c.ours()))
	require.Equal(t, want, got, "%s", script)
	return got
}

// works is same for what is no error.
func (c *callers) works(t testing.TB, script string, environ ...string) call {
	t.Helper()
	r := c.same(t, script, environ...)
	require.Zero(t, r.code, "%s", r.stderr)
	return r
}

// signs runs a script with ours, which makes the host's `sign` write the file signature in its
// home, or in one of its directories.
func (c *callers) signs(t testing.TB, script string, environ ...string) {
	t.Helper()
	r := c.call(t, c.ours(), script, environ...)
	require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
	require.NotContains(t, r.stderr, "gpg-bridge:")
	found := strings.Fields(c.host.Run(t, "find . -name signature"))
	require.Len(t, found, 1, "%s", r.stderr)
	c.verify(t, c.host.ReadFile(t, found[0]), "hello\n")
	c.host.Run(t, "rm "+found[0])
	c.requireNoSocket(t)
}
