//go:build unix

package bridge

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/sshdtest"
	"gpg-bridge/internal/sshtest"
	"gpg-bridge/internal/testenv"
)

// thief puts an agent at the host's path, in the place of the forward.
type thief func(t *testing.T, h *host)

// ownAgent does not ask the agent that it started for anything: by then the
// bridge may have taken the path back.
func ownAgent(t *testing.T, h *host) {
	require.NoError(t, os.Remove(h.socket))
	_, _, err := h.Run(t.Context(), nil, "gpgconf", "--launch", "gpg-agent")
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

// What took the path is noticed, and the path taken back: once. The second loss
// is the user's to know of.
func TestLostPathIsTakenBackOnce(t *testing.T) {
	for name, take := range map[string]thief{
		"own agent": ownAgent, "silent listener": silentListener, "removed": gone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alice, h := newLaptop(t), newHost(t, &sshtest.Server{})
			link := connect(t, h.config)
			u := start(t, link, alice.local(), Options{timing: quick})
			u.requireVerified(t)
			link.waitLooks(t, 3)
			require.Empty(t, u.all())

			take(t, h)
			require.ErrorIs(t, u.wait(t, 1)[0], errRetaken)
			require.NoError(t, h.sign(t, alice))
			require.NoError(t, u.Verified(t.Context()))

			take(t, h)
			second := u.wait(t, 2)[1]
			require.ErrorIs(t, second, errTaken)
			require.ErrorIs(t, u.Verified(t.Context()), errTaken)
			link.waitLooks(t, 2)
			require.Len(t, u.all(), 2, "it is said once")
			require.Equal(t, 2, link.seen(&link.forwards))

			before, statErr := os.Lstat(h.socket)
			u.close(t)
			after, err := os.Lstat(h.socket)
			require.Equal(t, statErr == nil, err == nil, "what is not ours is left as it was")
			if err == nil {
				require.True(t, os.SameFile(before, after))
			}
		})
	}
}

// A socket at which nobody listens any more is not mistaken for a server that
// lets nobody look.
func TestDeadSocketInOurPlaceIsNoticed(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &sshtest.Server{})
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

// Where the server lets nobody look, the path is believed; and at the end only
// a socket at which nobody answers is removed.
func TestServerThatLetsNobodyLook(t *testing.T) {
	t.Parallel()
	alice := newLaptop(t)
	check := func(t *testing.T, config, socket string) {
		link := connect(t, config)
		u := start(t, link, alice.local(), Options{timing: quick})
		u.requireVerified(t)
		require.FileExists(t, socket)
		u.close(t)
		require.NoFileExists(t, socket)

		u = start(t, link, alice.local(), Options{timing: quick})
		u.requireVerified(t)
		require.NoError(t, os.Remove(socket))
		greeter(t, socket)
		u.close(t)
		require.FileExists(t, socket, "somebody else's")
		require.Empty(t, u.all())
		require.Equal(t, 2, link.seen(&link.forwards))
		require.Equal(t, 2, link.seen(&link.dials), "one look was enough")
	}
	t.Run("embedded", func(t *testing.T) {
		h := newHost(t, &sshtest.Server{Faults: sshtest.Faults{DenyDirect: true}})
		check(t, h.config, h.socket)
	})
	t.Run("sshd", func(t *testing.T) {
		account := sshdtest.NewAccount(t, sshdtest.AccountConfig{})
		sshd := sshdtest.Start(t, sshdtest.Config{Account: account, Options: []string{"AllowStreamLocalForwarding remote"}})
		check(t, sshd.ConfigFile, account.Path(".gnupg/S.gpg-agent"))
	})
}

// greeter answers at the socket as the restricted agent of somebody else.
func greeter(t *testing.T, socket string) {
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
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
}

func TestAgentThatComesAndGoes(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &sshtest.Server{})
	extra, err := alice.ExtraSocket(t.Context())
	require.NoError(t, err)
	local := alice.local()
	// Named, the socket is used as it is, and no agent started.
	local.Agent.Locator = &agentside.Locator{AgentSocket: extra}
	u := start(t, connect(t, h.config), local, Options{})
	u.requireVerified(t)
	require.NoError(t, h.sign(t, alice))
	require.NoError(t, alice.RestartAgent(t.Context()))
	require.NoError(t, h.sign(t, alice))
	require.Empty(t, u.all())

	require.NoError(t, alice.StopAgent(t.Context()))
	for range 3 {
		require.ErrorContains(t, h.sign(t, alice), "No agent running")
	}
	var missing *agentside.NoAgentError
	require.ErrorAs(t, u.wait(t, 1)[0], &missing)
	require.NotEmpty(t, missing.Hint())

	require.NoError(t, alice.StartAgent(t.Context()))
	require.NoError(t, h.sign(t, alice))
	require.Len(t, u.all(), 1)
}

// An agent that accepts and says nothing holds up our own session, too; the
// path is ours all the same.
func TestHungAgentIsNoLoss(t *testing.T) {
	t.Parallel()
	h := newHost(t, &sshtest.Server{})
	path := filepath.Join(testenv.ShortDir(t), "S")
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

// A path that nobody uses is looked after for so long, and again from the next
// client on.
func TestWatchRestsWhenNobodyCalls(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &sshtest.Server{})
	link := connect(t, h.config)
	u := start(t, link, alice.local(), Options{LookFor: 10 * quick.interval, timing: quick})
	u.requireVerified(t)
	rests := func() {
		t.Helper()
		for seen := -1; seen != link.seen(&link.dials); time.Sleep(20 * quick.interval) {
			seen = link.seen(&link.dials)
		}
	}
	rests()
	before := link.seen(&link.dials)
	require.NoError(t, h.sign(t, alice))
	eventually(t, func() bool { return link.seen(&link.dials) > before })
	rests()
	require.Empty(t, u.all())
}
