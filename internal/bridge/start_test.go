//go:build unix

package bridge

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/remoteside/prepare"
)

const absent = "0000000000000000000000000000000000000001"

func TestSignsWithTheLocalKey(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{})
	require.Equal(t, h.socket, u.Path())
	u.requireVerified(t)
	require.NoError(t, h.sign(t, alice))
	u.close(t)
	require.NoFileExists(t, h.socket)
	require.Empty(t, u.all())
	require.Empty(t, u.server.Sessions())
}

func TestSignsOnARealHost(t *testing.T) {
	t.Parallel()
	alice := newLaptop(t)
	account := sshd.NewAccount(t, sshd.AccountConfig{})
	server := sshd.Start(t, sshd.Config{Account: account})
	u := start(t, connect(t, server.ConfigFile), alice.local(), Options{})
	u.requireVerified(t)
	account.Run(t, "echo hello | gpg --batch --no-tty -u "+alice.key.Fingerprint+" --detach-sign >/dev/null")
	u.close(t)
	require.NoFileExists(t, account.Path(".gnupg/S.gpg-agent"))
	require.Empty(t, u.all())
	require.Empty(t, gpgAgents(account))
}

func TestLiveForwardOfAnotherIsLeftAlone(t *testing.T) {
	t.Parallel()
	alice, bob, h := newLaptop(t), newLaptop(t), newHost(t, &fakesshd.Server{})
	first := start(t, connect(t, h.config), alice.local(), Options{timing: timing{interval: time.Second / 4, patience: time.Second, closing: within, agent: time.Second, calm: time.Hour, retake: within}})
	first.requireVerified(t)

	_, err := tryStart(t, connect(t, h.config), bob.local(), Options{})
	var held *prepare.HeldError
	require.ErrorAs(t, err, &held)
	require.Contains(t, held.Hint(), "--takeover")
	require.NoError(t, h.sign(t, alice), "it still works")
	require.Empty(t, first.all())

	second := start(t, connect(t, h.config), bob.local(), Options{Takeover: true})
	second.requireVerified(t)
	require.NoError(t, h.sign(t, bob))
	told := first.wait(t, 1)[0]
	require.ErrorAs(t, told, &held, "who took it wanted it: it is not taken back")
	first.close(t) // which need not look again
	require.NoError(t, h.sign(t, bob), "the first took nothing with it")
	second.close(t)
	require.NoFileExists(t, h.socket)
}

func TestRefusedForwardIsExplained(t *testing.T) {
	t.Parallel()
	alice := newLaptop(t)
	requirePolicy := func(t *testing.T, over *tap) {
		_, err := tryStart(t, over, alice.local(), Options{})
		var refused *prepare.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, prepare.RefusedByPolicy, refused.Refusal)
		require.Contains(t, refused.Hint(), "AllowStreamLocalForwarding")
	}
	t.Run("embedded", func(t *testing.T) {
		h := newHost(t, &fakesshd.Server{Faults: fakesshd.Faults{DenyForward: true}})
		over := connect(t, h.config)
		requirePolicy(t, over)
		require.Equal(t, 2, over.runs, "prepared once, looked at once")
	})
	t.Run("sshd", func(t *testing.T) {
		account := sshd.NewAccount(t, sshd.AccountConfig{})
		server := sshd.Start(t, sshd.Config{Account: account, Options: []string{"AllowStreamLocalForwarding no"}})
		requirePolicy(t, connect(t, server.ConfigFile))
	})
	t.Run("remote socket", func(t *testing.T) {
		h := newHost(t, &fakesshd.Server{})
		host := connect(t, h.config)
		_, err := tryStart(t, host, alice.local(), Options{RemoteSocket: h.Dir() + "/no/dir/S"})
		var refused *link.RefusedError
		require.ErrorAs(t, err, &refused)
		require.NotEmpty(t, refused.Hint())
		require.Zero(t, host.runs)
	})
}

// An agent that starts between the preparation and the forward takes the path; the second
// preparation stops it.
func TestAgentStartedInBetweenIsStopped(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	over := connect(t, h.config)
	over.beforeForward = func(nth int) {
		if nth == 1 {
			require.NoError(t, h.StartAgent(t.Context()))
		}
	}
	u := start(t, over, alice.local(), Options{})
	require.Equal(t, 2, over.seen(&over.forwards))
	u.requireVerified(t)
	require.NoError(t, h.sign(t, alice))
	require.Empty(t, u.all())
}

// One that does so again is reported, and not stopped once more.
func TestAgentStartedInBetweenAgainIsReported(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	over := connect(t, h.config)
	over.beforeForward = func(int) { require.NoError(t, h.StartAgent(t.Context())) }
	_, err := tryStart(t, over, alice.local(), Options{})
	require.Equal(t, prepare.RefusedExists, refusalOf(err))
	require.Equal(t, 2, over.forwards)
}

func TestWithoutALocalAgentTheHostsOwnIsLeft(t *testing.T) {
	t.Parallel()
	h := newHost(t, &fakesshd.Server{})
	require.NoError(t, h.StartAgent(t.Context()))
	before, err := h.AgentPID(t.Context())
	require.NoError(t, err)
	_, err = tryStart(t, connect(t, h.config), noAgent(), Options{})
	var own *prepare.OwnAgentError
	require.ErrorAs(t, err, &own)
	require.Equal(t, before, own.PID)
	after, err := h.AgentPID(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// noAgent is a local side without a running agent, which is not started either.
func noAgent() *Local {
	return &Local{
		Agent:  &agentside.Agent{Locator: &agentside.Locator{AgentSocket: "/nonexistent/S.gpg-agent"}},
		NoKeys: true,
	}
}

func TestWithoutALocalAgentGPGIsTold(t *testing.T) {
	t.Parallel()
	alice := newLaptop(t)
	account := sshd.NewAccount(t, sshd.AccountConfig{})
	server := sshd.Start(t, sshd.Config{Account: account})
	local := noAgent()
	local.NoKeys, local.Keyring = false, alice.local().Keyring
	found := local.Check(t.Context())
	var missing *agentside.NoAgentError
	require.ErrorAs(t, found.Err, &missing)
	require.Len(t, found.Wanted, 1)

	u, err := tryStartWith(t, connect(t, server.ConfigFile), local, found, Options{})
	require.NoError(t, err)
	u.endWith(t)
	u.requireVerified(t)
	said := account.Run(t, "echo hello | gpg --batch --no-tty -u "+alice.key.Fingerprint+" --detach-sign 2>&1 || true")
	require.Contains(t, said, "No agent running")
	require.Empty(t, gpgAgents(account), "gpg started one of its own")
	require.Empty(t, u.all(), "who called knew")
	u.close(t)
	require.NoFileExists(t, account.Path(".gnupg/S.gpg-agent"))
}

func gpgAgents(account *sshd.Account) (found []int) {
	for _, pid := range account.Processes() {
		if name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); strings.HasPrefix(string(name), "gpg-agent") {
			found = append(found, pid)
		}
	}
	return found
}

func TestRemoteSocketRunsNothing(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	require.NoError(t, h.ImportPublic(t.Context(), alice.Home))
	over := connect(t, h.config)
	u := start(t, over, alice.local(), Options{RemoteSocket: h.socket, timing: quick})
	u.requireVerified(t)
	require.NoError(t, h.sign(t, alice))

	require.NoError(t, os.Remove(h.socket))
	require.ErrorIs(t, u.wait(t, 1)[0], errRetaken, "a free path is asked for again")
	require.NoError(t, h.sign(t, alice))

	greeter(t, h.socket+"2")
	require.NoError(t, os.Rename(h.socket+"2", h.socket)) // at no time is nobody there
	require.ErrorIs(t, u.wait(t, 2)[1], errTaken)
	require.Equal(t, Taken, u.hindrance())
	over.waitLooks(t, 3)
	require.Len(t, u.all(), 2)
	require.Equal(t, 2, over.forwards, "nobody may look who has it, so it is not taken back")
	u.close(t)
	require.Zero(t, over.runs)
}

func TestKeysThatFailAreAWarning(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	local := alice.local()
	local.Keys = []string{"nobody@example.org"}
	u := start(t, connect(t, h.config), local, Options{})
	u.requireVerified(t)
	var unknown *agentside.KeyError
	require.ErrorAs(t, u.wait(t, 1)[0], &unknown)
	u.close(t)

	found := Finding{Wanted: []agentside.Key{{Fingerprint: absent}}}
	u, err := tryStartWith(t, connect(t, h.config), local, found, Options{})
	require.NoError(t, err)
	u.endWith(t)
	var notImported *prepare.ImportError
	require.ErrorAs(t, u.wait(t, 1)[0], &notImported)
	require.Equal(t, []string{absent}, notImported.Missing)
	u.requireVerified(t)
}

func TestKeysAreThoseAskedFor(t *testing.T) {
	t.Parallel()
	alice := newLaptop(t)
	local := alice.local()
	require.Len(t, local.Check(t.Context()).Wanted, 1)
	local.Keys = []string{"alice@example.org"}
	require.Len(t, local.Check(t.Context()).Wanted, 1)
	local.NoKeys = true
	require.Empty(t, local.Check(t.Context()).Wanted)
}

func TestStartIsCancelled(t *testing.T) {
	t.Parallel()
	alice := newLaptop(t)
	hold := make(chan struct{})
	defer close(hold)
	h := newHost(t, &fakesshd.Server{Faults: fakesshd.Faults{HoldReplies: hold}})
	over := connect(t, h.config)
	ctx, cancel := context.WithCancelCause(t.Context())
	over.beforeForward = func(int) { cancel(os.ErrDeadlineExceeded) }
	var told warnings
	_, err := Start(ctx, over, alice.local(), alice.local().Check(t.Context()), Options{Warn: told.add, Log: quiet})
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Empty(t, told.all())
}
