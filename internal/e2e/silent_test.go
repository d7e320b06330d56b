//go:build unix

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
)

// requireServedBeside: a session beside a bridge that hangs begins in time, and gpg
// on the host works in it.
func (s *scene) requireServedBeside(t *testing.T, pid int, args ...string) {
	t.Helper()
	r := s.requireBegins(t, nil, args...)
	require.Contains(t, r.stderr, fmt.Sprintf("process %d, a gpg-bridge, does not answer", pid))
	require.Contains(t, r.stderr, fmt.Sprintf("kill -CONT %d", pid))

	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	p := launch(t, s.laptop, in, s.args(append(args, "host", "echo there; read line")...)...)
	p.waitFor(t, &p.stdout, "there")
	eventually(t, s.isServed(t), "the session has no bridge of its own")
	s.sign(t)
	_, err = out.WriteString("\n")
	require.NoError(t, err)
	require.Zero(t, p.wait(t).code)
}

// isServed tells whether a restricted agent answers on the host.
func (s *scene) isServed(t *testing.T) func() bool {
	return func() bool {
		return strings.Contains(s.host.Run(t, "timeout 2 gpg-connect-agent --no-autostart 'GETINFO restricted' /bye 2>&1 || true"), "OK")
	}
}

// A bridge that is stopped delays nobody, and nobody is without one for it; when it
// goes on, there is one bridge.
func TestStoppedBridge(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	first := s.bridge(t)
	goOn := stop(t, first.cmd.Process.Pid)
	s.requireServedBeside(t, first.cmd.Process.Pid)
	s.requireServedBeside(t, first.cmd.Process.Pid, "--takeover")

	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	p := launch(t, s.laptop, in, s.args("host", "echo there; read line")...)
	p.waitFor(t, &p.stdout, "there")
	eventually(t, s.isServed(t), "the session has no bridge of its own")
	goOn()
	b := s.background(t)
	b.await(t, func(status share.Status) bool { // it has seen what came while it was stopped
		return status.PID == first.cmd.Process.Pid && status.Sessions == 0
	})
	first.signal(t, syscall.SIGTERM)
	require.Zero(t, first.wait(t).code)
	s.requireSocket(t)
	s.sign(t) // the first has left alone what is not its own any more
	b.await(t, func(status share.Status) bool {
		return status.State == share.Up && status.PID == p.cmd.Process.Pid
	})
	_, err = out.WriteString("\n")
	require.NoError(t, err)
	require.Zero(t, p.wait(t).code)
	s.requireNoSocket(t)
}

// A bridge that runs, and whose control socket is gone, or not its own, is the same
// to the others.
func TestBridgeWithADeadControlSocket(t *testing.T) {
	s := stage{}.set(t)
	b := s.background(t)
	s.importKey(t)
	b.up(t)
	status := b.status(t)[0]
	socket := filepath.Join(b.dir.Path(), status.ID+".sock")
	goOn := stop(t, status.PID) // it would make it again
	require.NoError(t, os.Remove(socket))
	s.requireServedBeside(t, status.PID)
	r := b.do(t, "down", "--all")
	require.Equal(t, 1, r.code)
	r.requireTwoLines(t, fmt.Sprintf("process %d, a gpg-bridge, does not answer", status.PID), fmt.Sprintf("kill -9 %d", status.PID))
	goOn()
	eventually(t, func() bool { _, err := os.Lstat(socket); return err == nil }, "it does not make its socket again")
}

// up, down and status name the process that hangs, and what to do, in time.
func TestCommandsBesideAStoppedBridge(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.up(t)
	status := b.status(t)[0]
	goOn := stop(t, status.PID)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"status"}, 0},
		{[]string{"up", "-F", b.sshd.ConfigFile, "host"}, 1},
		{[]string{"down", "-F", b.sshd.ConfigFile, "host"}, 1},
		{[]string{"down", "--all"}, 1},
	} {
		start := time.Now()
		r := b.do(t, c.args...)
		require.Less(t, time.Since(start), 12*time.Second, "%v", c.args)
		require.Equal(t, c.code, r.code, "%v", c.args)
		require.Contains(t, r.stderr, fmt.Sprintf("process %d, a gpg-bridge, does not answer", status.PID))
		require.Contains(t, r.stderr, fmt.Sprintf("kill -CONT %d", status.PID))
	}
	goOn()
	eventually(t, func() bool { return len(b.pids()) == 0 }, "it does not do what it was asked for")
}

// What cleans up temporary files takes a bridge out of nobody's sight: it makes
// again what is missing, and there is one bridge.
func TestRuntimeFilesVanish(t *testing.T) {
	for name, vanish := range map[string]func(t *testing.T, dir, id string){
		"the directory": func(t *testing.T, dir, _ string) { require.NoError(t, os.RemoveAll(dir)) },
		"the socket":    func(t *testing.T, dir, id string) { require.NoError(t, os.Remove(dir+"/"+id+".sock")) },
		"the lock":      func(t *testing.T, dir, id string) { require.NoError(t, os.Remove(dir+"/"+id+".lock")) },
	} {
		t.Run(name, func(t *testing.T) {
			b := stage{}.set(t).background(t)
			b.up(t)
			before := b.status(t)[0]
			vanish(t, b.dir.Path(), before.ID)
			file := func(suffix string) func() bool {
				return func() bool {
					_, err := os.Lstat(filepath.Join(b.dir.Path(), before.ID+suffix))
					return err == nil
				}
			}
			eventually(t, file(".lock"), "no lock")
			eventually(t, file(".sock"), "no socket")
			after := b.await(t, func(s share.Status) bool { return s.State == share.Up })
			require.Equal(t, before.PID, after.PID)
			info, err := os.Stat(b.dir.Path())
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
			held, err := b.dir.Held(before.ID)
			require.NoError(t, err)
			require.True(t, held)
			b.sign(t)
			b.up(t) // is already
			require.Equal(t, []int{before.PID}, b.pids())
			b.down(t, "--all")
			b.requireNoSocket(t)
		})
	}
}
