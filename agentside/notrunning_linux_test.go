package agentside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
)

// asItself marks the run of a test by a user who runs nothing else.
const asItself = "GPG_BRIDGE_TEST_AS_ITSELF"

// byItself runs the test again as a user whom nobody else is, and reports whether this is
// that run: which agents a user has is a matter of all that run as he.
func byItself(t *testing.T) bool {
	t.Helper()
	if os.Getenv(asItself) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		env.Missing(t, "not root: nobody else can be played")
	}
	uid := uint32(200_000 + os.Getpid())
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=120s")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), asItself+"=1", "HOME=/nonexistent", "TMPDIR=/tmp", "GOCOVERDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "%s", out)
	return false
}

// A service does for an agent what systemd does with gpg-agent.socket and its like: it
// listens, has the first who comes start an agent, and listens again when that has ended.
type service struct{ starts, running atomic.Int32 }

func (s *service) serve(t *testing.T, home *gpghome.Home) {
	t.Helper()
	names := []string{"agent-socket", "agent-extra-socket"}
	var files []*os.File
	for _, name := range names {
		path, err := home.Socket(t.Context(), name)
		require.NoError(t, err)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		require.NoError(t, err)
		file, err := listener.File()
		require.NoError(t, err)
		files = append(files, file)
		t.Cleanup(func() { _, _ = listener.Close(), file.Close() })
	}
	stop, served := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		for s.await(files, stop) {
			cmd := exec.Command("sh", "-c", "LISTEN_PID=$$ exec gpg-agent --supervised")
			cmd.Env = append(home.Env(), "LISTEN_FDS=2", "LISTEN_FDNAMES=std:extra")
			cmd.ExtraFiles = files
			s.starts.Add(1)
			s.running.Store(1)
			_ = cmd.Run()
			s.running.Store(0)
		}
	}()
	t.Cleanup(func() {
		close(stop)
		if s.running.Load() != 0 {
			_ = home.StopAgent(context.Background())
		}
		<-served
	})
}

func (s *service) await(files []*os.File, stop <-chan struct{}) bool {
	for {
		select {
		case <-stop:
			return false
		default:
		}
		var polled []unix.PollFd
		for _, file := range files {
			polled = append(polled, unix.PollFd{Fd: int32(file.Fd()), Events: unix.POLLIN})
		}
		if n, err := unix.Poll(polled, 50); n > 0 {
			return true
		} else if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

// TestLookWakesNobody: where a service manager listens for an agent that has ended, to
// connect is to start another. Connect does, and nothing else.
func TestLookWakesNobody(t *testing.T) {
	if !byItself(t) {
		return
	}
	home := gpghome.ForTest(t)
	var manager service
	manager.serve(t, home)
	extra, err := home.ExtraSocket(t.Context())
	require.NoError(t, err)
	for i, named := range []string{"", extra} {
		agent := &Agent{Locator: &Locator{Env: home.Env(), AgentSocket: named}}
		for start := range 2 {
			done := t.Run(fmt.Sprintf("%q %d", named, start), func(t *testing.T) {
				require.NoError(t, tryConnect(t, agent))
				require.EqualValues(t, 2*i+start+1, manager.starts.Load())
				running, err := agent.Alive(t.Context())
				require.NoError(t, err)
				require.True(t, running)
				_, err = agent.ProcessID(t.Context())
				require.NoError(t, err)

				_, _, err = home.Run(t.Context(), nil, "gpgconf", "--kill", "gpg-agent")
				require.NoError(t, err)
				require.Eventually(t, func() bool { return manager.running.Load() == 0 }, 30*time.Second, time.Millisecond)
				for range 3 {
					running, err = agent.Alive(t.Context())
					require.NoError(t, err)
					require.False(t, running)
					_, err = agent.ProcessID(t.Context())
					requireHint[*NoAgentError](t, err)
					_, err = agent.ConnectMute(t.Context())
					requireHint[*NoAgentError](t, err)
				}
				time.Sleep(200 * time.Millisecond)
				require.EqualValues(t, 2*i+start+1, manager.starts.Load(), "it was started again")
			})
			require.True(t, done)
		}
	}
}
