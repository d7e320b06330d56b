//go:build unix

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
)

// stay starts a session, with variables of its own, that lasts until end.
func (s *scene) stay(t *testing.T, env ...string) (p *process, end func()) {
	t.Helper()
	in, out, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = in.Close()
		_ = out.Close()
	})
	cmd := exec.Command(program, s.args("host", "echo there; read line")...)
	cmd.Env = env
	p = launchAs(t, cmd, s.laptop, in)
	p.waitFor(t, &p.stdout, "there")
	return p, func() {
		t.Helper()
		_, err := out.WriteString("\n")
		require.NoError(t, err)
		require.Zero(t, p.wait(t).code)
	}
}

// requireOneWarning: the text, what to do, and no more.
func (p *process) requireOneWarning(t *testing.T, text string) {
	t.Helper()
	said := p.stderr.String()
	require.Contains(t, said, text)
	require.Equal(t, 1, strings.Count(said, "warning:"), said)
	require.Equal(t, 2, strings.Count(said, "\n"), said)
}

const noAnswer = "a gpg-bridge, does not answer"

// Of two sessions beside a stopped bridge the second serves gpg when the first has ended.
func TestTwoBesideAStoppedBridge(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	stop(t, s.bridge(t).cmd.Process.Pid)
	first, endFirst := s.stay(t)
	eventually(t, s.isServed(t), "the first session has no bridge of its own")
	second, endSecond := s.stay(t)
	second.waitFor(t, &second.stderr, noAnswer)
	s.sign(t) // by the first
	endFirst()
	first.requireOneWarning(t, noAnswer)
	eventually(t, s.isServed(t), "the second session has no bridge")
	s.sign(t)
	endSecond()
	second.requireOneWarning(t, noAnswer)
}

// A session whose bridge is another process's has one of its own when that is stopped.
func TestFollowedBridgeIsStopped(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	first := s.bridge(t)
	p, end := s.stay(t)
	s.sign(t)
	goOn := stop(t, first.cmd.Process.Pid)
	p.waitFor(t, &p.stderr, noAnswer)
	eventually(t, s.isServed(t), "the session has no bridge of its own")
	s.sign(t)
	goOn()
	end()
	p.requireOneWarning(t, noAnswer)
}

// Two sessions that have no directory in which they could find each other: the second
// serves gpg when the first has ended.
func TestSessionsThatCannotFindEachOther(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	taken := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(taken, nil, 0o600))
	env := []string{"XDG_RUNTIME_DIR=", "TMPDIR=" + taken}
	_, endFirst := s.stay(t, env...)
	eventually(t, s.isServed(t), "the first session has no bridge")
	second, endSecond := s.stay(t, env...)
	s.sign(t)
	endFirst()
	eventually(t, s.isServed(t), "the second session has no bridge")
	s.sign(t)
	endSecond()
	second.requireOneWarning(t, "not a directory")
}

// A process in the background behind a session that is stopped stays, and takes over when
// that has ended.
func TestStandbyBehindAStoppedSession(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.importKey(t)
	p, _ := b.stay(t)
	b.await(t, func(status share.Status) bool { return status.State == share.Up })
	require.Zero(t, b.do(t, "up", "-F", b.sshd.ConfigFile, "host").code)
	before := b.pids()
	require.Len(t, before, 1)
	stop(t, p.cmd.Process.Pid)
	require.Never(t, func() bool { return len(b.pids()) == 0 }, 13*time.Second, 100*time.Millisecond, "it has ended") // it asks after 5 seconds, and again, and waits for 3 each time
	require.NoError(t, p.cmd.Process.Kill())
	status := b.await(t, func(status share.Status) bool { return status.State == share.Up })
	require.Equal(t, before[0], status.PID)
	b.sign(t)
	b.down(t, "--all")
}

// A process that is the bridge and hangs up on everybody is of no use, and lives: nobody
// asks it without a pause, and nobody is told to kill it.
func TestBridgeThatHangsUp(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.importKey(t)
	b.up(t)
	id := b.status(t)[0].ID
	b.down(t, "--all")
	lock, err := os.OpenFile(b.dir.LockPath(id), os.O_RDWR, 0)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	listener, err := net.Listen("unix", filepath.Join(b.dir.Path(), id+".sock"))
	require.NoError(t, err)
	var asked atomic.Int64
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = conn.Close()
		}
	}()
	defer func() {
		_ = listener.Close()
		<-over
	}()
	p, end := b.stay(t)
	eventually(t, b.isServed(t), "the session has no bridge of its own")
	b.sign(t)
	require.Less(t, asked.Load(), int64(200))
	end()
	p.requireOneWarning(t, "answers nothing that can be understood")
	require.NotContains(t, p.stderr.String(), "kill")
}
