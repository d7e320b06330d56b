//go:build unix

package bridge

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/remoteside/prepare"
)

// A thief puts an agent at the host's path, instead of the forward.
type thief func(t *testing.T, h *host)

// ownAgent starts an agent, but not by gpgconf --launch, which would also ask it something: by
// then the bridge may have taken the path back.
func ownAgent(t *testing.T, h *host) {
	require.NoError(t, os.Remove(h.socket))
	_, _, err := h.Run(t.Context(), nil, "gpg-agent", "--daemon")
	require.NoError(t, err)
}

// silentListener accepts connections, as the kernel does, and says nothing.
func silentListener(t *testing.T, h *host) {
	require.NoError(t, os.Remove(h.socket))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.socket})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	t.Cleanup(func() { _ = listener.Close() })
}

func gone(t *testing.T, h *host) { require.NoError(t, os.Remove(h.socket)) }

// If something takes the path, that is noticed and the path taken back, however often it
// happens; the user is told once.
func TestLostPathIsTakenBack(t *testing.T) {
	for name, take := range map[string]thief{
		"own agent": ownAgent, "silent listener": silentListener, "removed": gone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
			over := connect(t, h.config)
			u := start(t, over, alice.local(), Options{timing: quick})
			u.requireVerified(t)
			over.waitLooks(t, 3)
			require.Empty(t, u.all())

			for nth := range 3 {
				take(t, h)
				eventually(t, func() bool { return over.seen(&over.forwards) == nth+2 })
				over.waitLooks(t, 1)
				eventually(t, func() bool { return u.hindrance() == None })
				require.NoError(t, h.sign(t, alice))
				require.NoError(t, u.Verified(t.Context()))
			}
			require.ErrorIs(t, u.wait(t, 1)[0], errRetaken)
			u.close(t)
			require.NoFileExists(t, h.socket)
		})
	}
}

// hindrance returns that of Health.
func (u *up) hindrance() Hindrance {
	what, _ := u.Health()
	return what
}

// When the host's own agent comes again it is left alone for a while, as Health says; but a
// path that has become free is taken at once.
func TestFreePathIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	over := connect(t, h.config)
	patient := quick
	patient.pause = time.Hour
	u := start(t, over, alice.local(), Options{timing: patient})
	u.requireVerified(t)
	ownAgent(t, h)
	require.ErrorIs(t, u.wait(t, 1)[0], errRetaken)

	ownAgent(t, h)
	told := u.wait(t, 2)[1]
	var own *prepare.OwnAgentError
	require.ErrorAs(t, told, &own)
	require.ErrorContains(t, told, "has taken the socket again; it is stopped in ")
	pid, err := h.AgentPID(t.Context())
	require.NoError(t, err)
	require.Equal(t, pid, own.PID)
	what, why := u.Health()
	require.Equal(t, Taken, what)
	require.ErrorAs(t, why, &own)
	over.waitLooks(t, 5)
	require.Len(t, u.all(), 2, "it is said once")
	require.Equal(t, 2, over.seen(&over.forwards), "they fight")

	require.NoError(t, h.StopAgent(t.Context()))
	require.ErrorIs(t, u.wait(t, 3)[2], errRetaken)
	require.Equal(t, None, u.hindrance())
	require.NoError(t, h.sign(t, alice))
}

// If the path is somebody else's when the bridge ends, what is there is left alone.
func TestPathThatIsNotOursIsLeft(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	patient := quick
	patient.pause = time.Hour
	u := start(t, connect(t, h.config), alice.local(), Options{timing: patient})
	u.requireVerified(t)
	ownAgent(t, h)
	u.wait(t, 1)
	ownAgent(t, h)
	u.wait(t, 2)
	before, err := os.Lstat(h.socket)
	require.NoError(t, err)
	u.close(t)
	after, err := os.Lstat(h.socket)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
}

// Another's live forward is left alone, and the path taken back when that ends.
func TestPathComesBackFromAnother(t *testing.T) {
	t.Parallel()
	alice, bob, h := newLaptop(t), newLaptop(t), newHost(t, &fakesshd.Server{})
	changes := make(chan struct{}, 100)
	first := start(t, connect(t, h.config), alice.local(), Options{timing: quick, Changed: func() { changes <- struct{}{} }})
	first.requireVerified(t)
	require.Empty(t, changes)
	second := start(t, connect(t, h.config), bob.local(), Options{Takeover: true})
	second.requireVerified(t)
	eventually(t, func() bool { return first.hindrance() == Taken })
	<-changes
	var held *prepare.HeldError
	require.ErrorAs(t, first.wait(t, 1)[0], &held)
	require.NoError(t, h.sign(t, bob))
	second.close(t)
	back := first.wait(t, 2)[1]
	require.ErrorIs(t, back, errRetakenFromOther)
	require.NotContains(t, usertext.Hint(back), "gpg-agent.socket", "which had nothing to do with it")
	eventually(t, func() bool { return first.hindrance() == None })
	<-changes
	require.NoError(t, h.sign(t, alice))
}

// A socket at which nobody listens any more is not mistaken for a server that does not let us
// open it.
func TestDeadSocketInOurPlaceIsNoticed(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{timing: quick})
	u.requireVerified(t)
	other := filepath.Join(h.Dir(), "other")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: other})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	require.NoError(t, os.Rename(other, h.socket))
	require.ErrorIs(t, u.wait(t, 1)[0], errRetaken)
	require.NoError(t, h.sign(t, alice))
}

// If the server does not let us open the path, it is taken to be ours; and at the end the
// socket is removed only if nobody answers at it.
func TestServerThatLetsNobodyLook(t *testing.T) {
	t.Parallel()
	alice := newLaptop(t)
	check := func(t *testing.T, config, socket string) {
		over := connect(t, config)
		u := start(t, over, alice.local(), Options{timing: quick})
		u.requireVerified(t)
		require.FileExists(t, socket)
		u.close(t)
		require.NoFileExists(t, socket)

		u = start(t, over, alice.local(), Options{timing: quick})
		u.requireVerified(t)
		require.NoError(t, os.Remove(socket))
		greeter(t, socket)
		u.close(t)
		require.FileExists(t, socket, "somebody else's")
		require.Empty(t, u.all())
		require.Equal(t, 2, over.seen(&over.forwards))
		require.LessOrEqual(t, over.seen(&over.dials), 4, "one look was enough")
	}
	t.Run("embedded", func(t *testing.T) {
		h := newHost(t, &fakesshd.Server{Faults: fakesshd.Faults{DenyDirect: true}})
		check(t, h.config, h.socket)
	})
	t.Run("sshd", func(t *testing.T) {
		account := sshd.NewAccount(t, sshd.AccountConfig{})
		server := sshd.Start(t, sshd.Config{Account: account, Options: []string{"AllowStreamLocalForwarding remote"}})
		check(t, server.ConfigFile, account.Path(".gnupg/S.gpg-agent"))
	})
}

// greeter answers at the socket as the restricted agent of somebody else.
func greeter(t *testing.T, socket string) (end func()) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	require.NoError(t, err)
	require.NoError(t, os.Chmod(socket, 0o777))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintln(conn, "OK Pleased to meet you")
			for in := bufio.NewScanner(conn); in.Scan(); {
				_, _ = fmt.Fprintln(conn, "OK")
			}
			_ = conn.Close()
		}
	}()
	end = func() {
		_ = listener.Close()
		<-done
	}
	t.Cleanup(end)
	return end
}

func TestAgentThatComesAndGoes(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	extra, err := alice.ExtraSocket(t.Context())
	require.NoError(t, err)
	local := alice.local()
	// Named, the socket is used as it is, and no agent started.
	local.Agent.Locator = &agentside.Locator{AgentSocket: extra}
	u := start(t, connect(t, h.config), local, Options{timing: quick})
	u.requireVerified(t)
	require.NoError(t, h.sign(t, alice))
	require.NoError(t, alice.RestartAgent(t.Context()))
	require.NoError(t, h.sign(t, alice))
	require.Empty(t, u.all())

	require.NoError(t, alice.StopAgent(t.Context()))
	eventually(t, func() bool { return u.hindrance() == NoAgent })
	for range 3 {
		require.ErrorContains(t, h.sign(t, alice), "No agent running")
	}
	var missing *agentside.NoAgentError
	require.ErrorAs(t, u.wait(t, 1)[0], &missing)
	require.NotEmpty(t, missing.Hint())

	require.NoError(t, alice.StartAgent(t.Context()))
	eventually(t, func() bool { return u.hindrance() == None })
	require.NoError(t, h.sign(t, alice))
	require.Len(t, u.all(), 1)
}

// An agent that was ended, and can be started when somebody needs it, is no hindrance, and is
// not started to find that out. A stopped agent is one, until it goes on.
func TestAgentIsLookedAt(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	over := connect(t, h.config)
	u := start(t, over, alice.local(), Options{timing: quick})
	u.requireVerified(t)
	require.NoError(t, alice.StopAgent(t.Context()))
	over.waitLooks(t, 5)
	require.Equal(t, None, u.hindrance())
	_, err := alice.AgentPID(t.Context())
	require.Error(t, err, "it was started by a look")

	require.NoError(t, h.sign(t, alice))
	pid, err := alice.AgentPID(t.Context())
	require.NoError(t, err)
	defer syscall.Kill(pid, syscall.SIGCONT)
	eventually(t, func() bool { // the kernels of some sandboxes lose a SIGSTOP now and then
		return syscall.Kill(pid, syscall.SIGSTOP) == nil && u.hindrance() == NoAgent
	})
	_, why := u.Health()
	var silent *agentside.NoGreetingError
	require.ErrorAs(t, why, &silent)
	require.NotEmpty(t, silent.Hint())
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	eventually(t, func() bool { return u.hindrance() == None })
	require.Empty(t, u.all())
}

// An agent that accepts and says nothing delays our own session, too; the path is ours all the
// same.
func TestHungAgentIsNoLoss(t *testing.T) {
	t.Parallel()
	h := newHost(t, &fakesshd.Server{})
	path := filepath.Join(env.ShortDir(t), "S")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer listener.Close()
	local := noAgent()
	local.Agent.Locator = &agentside.Locator{AgentSocket: path}
	u, err := tryStartWith(t, connect(t, h.config), local, Finding{}, Options{timing: quick})
	require.NoError(t, err)
	u.endWith(t)
	u.requireVerified(t)
	u.close(t)
	require.Empty(t, u.all())
	require.NoFileExists(t, h.socket)
}

// A path that nobody uses is verified only for Options.LookFor, and again after the next
// client.
func TestWatchRestsWhenNobodyCalls(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	over := connect(t, h.config)
	u := start(t, over, alice.local(), Options{LookFor: 10 * quick.interval, timing: quick})
	u.requireVerified(t)
	rests := func() {
		t.Helper()
		for seen := -1; seen != over.seen(&over.dials); time.Sleep(20 * quick.interval) {
			seen = over.seen(&over.dials)
		}
	}
	rests()
	before := over.seen(&over.dials)
	require.NoError(t, h.sign(t, alice))
	eventually(t, func() bool { return over.seen(&over.dials) > before })
	rests()
	before = over.seen(&over.dials)
	var held *prepare.HeldError
	require.ErrorAs(t, prepare.Look(t.Context(), u.link, ""), &held)
	time.Sleep(5 * quick.interval)
	require.Equal(t, before, over.seen(&over.dials), "to look whose the path is is no use of it")
	require.Empty(t, u.all())
}

// A look at the path does not start the agent that the user has ended.
func TestWhoLooksWakesNoAgent(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	require.NoError(t, h.ImportPublic(t.Context(), alice.Home))
	stats := NewStats(func() {})
	u := start(t, connect(t, h.config), alice.local(), Options{Stats: stats})
	u.requireVerified(t)
	require.NoError(t, alice.StopAgent(t.Context()))
	var held *prepare.HeldError
	require.ErrorAs(t, prepare.Look(t.Context(), u.link, ""), &held)
	_, err := tryStartWith(t, connect(t, h.config), noAgent(), Finding{}, Options{})
	require.ErrorAs(t, err, &held)
	_, err = alice.AgentPID(t.Context())
	require.Error(t, err, "the agent was started")
	require.Zero(t, stats.Counts().Total)
	require.NoError(t, h.sign(t, alice))
	require.NotZero(t, stats.Counts().Total)
}

// To find out who has the path, the host runs a script. So it is asked at growing intervals
// while somebody has it, and at once when somebody is about to use the bridge.
func TestHostIsAskedRarelyWhoHasThePath(t *testing.T) {
	t.Parallel()
	alice, bob, h := newLaptop(t), newLaptop(t), newHost(t, &fakesshd.Server{})
	over := connect(t, h.config)
	patient := quick
	patient.pause = time.Hour
	first := start(t, over, alice.local(), Options{timing: patient})
	first.requireVerified(t)
	second := start(t, connect(t, h.config), bob.local(), Options{Takeover: true})
	second.requireVerified(t)
	first.wait(t, 1)
	runs := over.seen(&over.runs)
	over.waitLooks(t, 5)
	require.Equal(t, runs, over.seen(&over.runs))
	var held *prepare.HeldError
	_, why := first.Health()
	require.ErrorAs(t, why, &held)
	first.Look()
	eventually(t, func() bool { return over.seen(&over.runs) > runs })
	second.close(t)
	require.ErrorIs(t, first.wait(t, 2)[1], errRetakenFromOther, "a path that is free is taken at once")
}
