//go:build unix

package e2e

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/faults"
	"gpg-bridge/internal/testkit/gpghome"
)

const (
	// aSecond is a second, on a machine that does other things, too.
	aSecond = 3 * time.Second
	// keepalives is how long the black hole's bridge believes in its
	// connection: two silent intervals of a second each, and the third's end.
	keepalives = 3 * time.Second
)

// inject lets a scene's fault happen, and after makes sure of what is so then.
var sceneFaults = map[string]struct {
	args   []string
	inject func(t *testing.T, c *crowd)
	after  func(t *testing.T, c *crowd)
}{
	"agent killed": {
		inject: func(t *testing.T, c *crowd) { require.NoError(t, c.scene.laptop.KillAgent(t.Context())) },
		after:  served,
	},
	"agent stopped": {
		inject: func(*testing.T, *crowd) {}, // the crowd's is
		after:  func(t *testing.T, c *crowd) { c.requireLeavers(t) },
	},
	"clients killed": {
		inject: func(t *testing.T, c *crowd) {
			for _, client := range c.all() {
				require.NoError(t, client.Close())
			}
		},
		after: func(t *testing.T, c *crowd) {
			c.resume(t)
			eventually(t, func() bool { return c.bridge.sockets(t) == c.base }, "something of theirs stays")
			served(t, c)
		},
	},
	"sshd killed": {
		inject: func(_ *testing.T, c *crowd) { c.scene.sshd.KillSessions() },
		after:  upAgain,
	},
	"connection cut": {
		args:   []string{"-o", "ProxyCommand=socat - TCP:%h:%p"},
		inject: func(t *testing.T, c *crowd) { killChildren(t, c.bridge.cmd.Process.Pid, "socat") },
		after:  upAgain,
	},
	"black hole": {
		args:   []string{"-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2"},
		inject: func(_ *testing.T, c *crowd) { c.scene.host.Stop() },
		after:  upAgain,
	},
	"SIGTERM": {
		inject: func(t *testing.T, c *crowd) { c.bridge.signal(t, syscall.SIGTERM) },
		after: func(t *testing.T, c *crowd) {
			require.Zero(t, c.bridge.wait(t).code)
			c.scene.requireNoSocket(t)
		},
	},
	"disk full": {
		args:   []string{"-v"},
		inject: func(*testing.T, *crowd) {}, // it was so from the beginning
		after:  served,
	},
}

// TestFaultsOfProcesses plays the scenes of internal/faults.
func TestFaultsOfProcesses(t *testing.T) {
	require.Len(t, sceneFaults, len(faults.Scenes))
	for _, scene := range faults.Scenes {
		t.Run(scene.Name, func(t *testing.T) {
			f, ok := sceneFaults[scene.Name]
			require.True(t, ok, "nobody knows how to play it")
			c := gather(t, scene, f.args)
			f.inject(t, c)
			c.require(t, scene)
			f.after(t, c)
		})
	}
}

// A crowd is four clients of one bridge, each in a state of its own. It is on
// the host, and its agent is stopped, so that the last is not greeted.
type crowd struct {
	scene  *scene
	bridge *process
	path   string
	base   int // the bridge's sockets without clients

	idle, pending, inquiry, ungreeted *client
}

func gather(t *testing.T, of faults.Scene, args []string) *crowd {
	s := stage{key: gpghome.KeySpec{Passphrase: "secret"}}.set(t)
	require.NoError(t, s.laptop.SetPinentry(gpghome.PinentryNever()))
	c := &crowd{scene: s, path: s.socket(t)}
	if of.Name == "disk full" {
		c.bridge = s.deafBridge(t, args...)
	} else {
		c.bridge = s.bridge(t, args...)
	}
	s.extraSocket(t) // for the agent's process id
	c.base = c.bridge.settle(t)
	c.idle, c.inquiry, c.pending = dial(t, c.path), dial(t, c.path), dial(t, c.path)
	require.Equal(t, "OK\n", c.idle.ask(t, "NOP\n"))
	c.inquiry.inquire(t, s.key.SubKeygrip)
	require.Equal(t, "OK\n", c.pending.ask(t, "SIGKEY "+s.key.Keygrip+"\n"))
	require.Equal(t, "OK\n", c.pending.ask(t, "SETHASH 8 "+strings.Repeat("0", 64)+"\n"))
	c.pending.send(t, "PKSIGN\n")
	_, err := s.laptop.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	if of.Ungreeted == faults.Absent {
		return c
	}
	require.NoError(t, s.laptop.SignalAgent(syscall.SIGSTOP))
	t.Cleanup(func() { c.resume(t) })
	c.ungreeted = dial(t, c.path)
	c.ungreeted.send(t, "NOP\n")
	eventually(t, func() bool { return c.bridge.sockets(t) == c.base+4 }, "no connection to the agent that does not greet")
	return c
}

// deafBridge starts a bridge whose messages and logs find no room.
func (s *scene) deafBridge(t testing.TB, args ...string) *process {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	line := append([]string{"-c", `exec "$0" "$@" 2>/dev/full`, program}, s.args(append(args, "-N", "host")...)...)
	p := launchAs(t, exec.Command("sh", line...), s.laptop, r)
	eventually(t, func() bool {
		conn, err := net.Dial("unix", s.socket(t))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, "no bridge")
	return p
}

// resume continues the agent, if it is still there.
func (c *crowd) resume(testing.TB) { _ = c.scene.laptop.SignalAgent(syscall.SIGCONT) }

func (c *crowd) all() []*client {
	all := []*client{c.idle, c.pending, c.inquiry}
	if c.ungreeted != nil {
		all = append(all, c.ungreeted)
	}
	return all
}

// require requires what the scene says of each client.
func (c *crowd) require(t *testing.T, of faults.Scene) {
	outcomes := []faults.Outcome{of.Idle, of.Pending, of.Inquiry, of.Ungreeted}
	for i, client := range c.all() {
		t.Logf("%s: %s", []string{"idle", "pending", "inquiry", "ungreeted"}[i], outcomes[i])
		switch outcomes[i] {
		case faults.Told:
			client.requireEnd(t)
		case faults.NoAgent:
			require.Equal(t, "ERR 67108941 No agent running <GPG Agent>\n", client.response(t))
			client.requireEnd(t)
		}
	}
	switch of.Idle {
	case faults.Told:
		c.requireLeft(t, 0, aSecond)
	case faults.Ends:
		c.requireLeft(t, 0, aSecond)
	case faults.GivenUp:
		c.requireLeft(t, 0, keepalives+aSecond)
	case faults.Closed:
		c.idle.requireEnd(t)
		time.Sleep(time.Second) // in which nothing else must end
		require.GreaterOrEqual(t, c.bridge.sockets(t), c.base+2)
	case faults.GoesOn:
		require.Equal(t, "OK\n", c.idle.ask(t, "NOP\n"))
		c.inquiry.send(t, "CAN\n")
		require.True(t, strings.HasPrefix(c.inquiry.response(t), "ERR 67109141"))
		// The bridge may just have one of its own, to look.
		eventually(t, func() bool { return c.bridge.sockets(t) == c.base+3 }, "the one that waits")
	}
}

// looks is how many connections of its own a bridge may have to an agent that is
// stopped: one to see whether it can be used, one for its prompts.
const looks = 2

// requireLeft: so many connections to the agent are left after the limit.
func (c *crowd) requireLeft(t testing.TB, most int, limit time.Duration) {
	t.Helper()
	start := time.Now()
	require.NoError(t, within(limit, func() bool {
		return c.ended() || c.bridge.sockets(t) <= c.base+most+looks
	}), "more than %d connections to the agent", most)
	t.Logf("at most %d connections after %v", most, time.Since(start))
}

func (c *crowd) ended() bool {
	select {
	case <-c.bridge.ended:
		return true
	default:
		return false
	}
}

// requireLeavers: those who leave while the agent is stopped take along what
// they had of it, and the one who stays is answered when it goes on.
func (c *crowd) requireLeavers(t *testing.T) {
	require.NoError(t, c.pending.Close())
	require.NoError(t, c.inquiry.Close())
	require.NoError(t, within(aSecond, func() bool { return c.bridge.sockets(t) <= c.base+looks }))
	c.resume(t)
	eventually(t, func() bool { return c.bridge.sockets(t) == c.base }, "who left did not take it along")
	served(t, c)
}

// requireEnd: the client's connection ends within a second.
func (c *client) requireEnd(t testing.TB) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(aSecond)))
	_, err := io.Copy(io.Discard, c.in)
	require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "not closed in %v", aSecond)
}

// served: a new client completes a command.
func served(t *testing.T, c *crowd) {
	client := dial(t, c.path)
	require.Equal(t, "OK\n", client.ask(t, "NOP\n"))
	require.NoError(t, client.Close())
}

// upAgain: the bridge has found its way back.
func upAgain(t *testing.T, c *crowd) {
	c.resume(t)
	eventually(t, func() bool { return strings.Count(c.bridge.stderr.String(), serving) == 2 }, "not reconnected: %s", c.bridge.stderr.String())
	served(t, c)
}

// killChildren kills the children of a process that have this name.
func killChildren(t testing.TB, parent int, name string) {
	t.Helper()
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(parent) + "/task/*/children")
	require.NoError(t, err)
	killed := 0
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for word := range strings.FieldsSeq(string(children)) {
			comm, _ := os.ReadFile("/proc/" + word + "/comm")
			if pid, err := strconv.Atoi(word); err == nil && strings.TrimSpace(string(comm)) == name {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
				killed++
			}
		}
	}
	require.NotZero(t, killed, "no %s", name)
}
