//go:build linux

package bridge

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
)

// newAskingLaptop returns a laptop whose agent asks for the passphrase of its key with a
// pinentry that does not answer.
func newAskingLaptop(t *testing.T) *laptop {
	t.Helper()
	home := gpghome.ForTest(t)
	key, err := home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Alice <alice@example.org>", Passphrase: "secret"})
	require.NoError(t, err)
	require.NoError(t, home.SetPinentry(gpghome.PinentryNever()))
	return &laptop{home, key}
}

// signKilled starts a signature by gpg on the host, and kills gpg when the prompt is open.
func signKilled(t *testing.T, h *host, by *laptop) (prompt gpghome.PinentryCall) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var signing sync.WaitGroup
	signing.Go(func() {
		_, _, _ = h.Gpg(ctx, strings.NewReader("hello\n"), "--no-autostart", "-u", by.key.Fingerprint, "--detach-sign", "-o", "-")
	})
	prompt, err := by.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	kill()
	signing.Wait()
	return prompt
}

// keepsPrompts reports whether the laptop's agent keeps a prompt whose client has gone.
func keepsPrompts(t *testing.T, l *laptop) bool {
	t.Helper()
	out, _, err := l.Run(t.Context(), nil, "gpg-agent", "--version")
	require.NoError(t, err)
	return strings.HasPrefix(string(out), "gpg-agent (GnuPG) 2.2.")
}

// TestAbandonedPromptIsCancelled: gpg on the host is killed while the agent asks for a
// passphrase. The prompt goes away, and the next signature has one of its own; nobody need be
// told.
func TestAbandonedPromptIsCancelled(t *testing.T) {
	t.Parallel()
	alice, h := newAskingLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{timing: quick})
	u.requireVerified(t)
	prompt := signKilled(t, h, alice)
	eventually(t, func() bool { return !prompt.Running() })
	require.NoError(t, alice.SetPinentry(gpghome.PinentryAnswers("secret")))
	require.NoError(t, h.sign(t, alice))
	require.Empty(t, u.all())
	what, _ := u.Health()
	require.Equal(t, None, what)
}

// TestUseAfterSeveralWereKilled: as after Ctrl-C in a program that signs several things
// concurrently. A use that follows at once, of a key that needs no prompt, waits until the
// agent is done with enough of them, and signs.
func TestUseAfterSeveralWereKilled(t *testing.T) {
	t.Parallel()
	alice, h := newAskingLaptop(t), newHost(t, &fakesshd.Server{})
	key, err := alice.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Bob <bob@example.org>"})
	require.NoError(t, err)
	timing := quick
	timing.room = within
	u := start(t, connect(t, h.config), alice.local(), Options{timing: timing})
	u.requireVerified(t)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var signing sync.WaitGroup
	for range mostLeft + 1 {
		signing.Go(func() {
			_, _, _ = h.Gpg(ctx, strings.NewReader("hello\n"), "--no-autostart", "-u", alice.key.Fingerprint, "--detach-sign", "-o", "-")
		})
	}
	eventually(t, func() bool { return len(u.prompts.situation().pending) == mostLeft+1 })
	_, err = alice.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	kill()
	signing.Wait()
	require.NoError(t, h.sign(t, &laptop{alice.Home, key}))
	require.Empty(t, u.all())
	eventually(t, func() bool { return len(u.prompts.situation().left) == 0 && !u.prompts.isOpen() })
}

// TestPromptIsCancelledAtTheEnd: the connection ends while a prompt is open.
func TestPromptIsCancelledAtTheEnd(t *testing.T) {
	t.Parallel()
	alice, h := newAskingLaptop(t), newHost(t, &fakesshd.Server{})
	u, err := tryStart(t, connect(t, h.config), alice.local(), Options{timing: quick})
	require.NoError(t, err)
	u.requireVerified(t)
	var signing sync.WaitGroup
	signing.Go(func() {
		_, _, _ = h.Gpg(t.Context(), strings.NewReader("hello\n"), "--no-autostart", "-u", alice.key.Fingerprint, "--detach-sign", "-o", "-")
	})
	prompt, err := alice.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	u.close(t)
	signing.Wait()
	require.False(t, prompt.Running(), "the bridge is gone, and its prompt still open")
	require.Empty(t, u.all())
}

// TestAbandonedPromptIsTold: the prompt may be for another program that is connected to the
// agent, too. The user is told once, and again when somebody waits behind the prompt; the
// hindrance is gone when the prompt is. A newer agent cancels the prompt itself.
func TestAbandonedPromptIsTold(t *testing.T) {
	t.Parallel()
	alice, h := newAskingLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{timing: quick})
	u.requireVerified(t)
	extra, err := alice.ExtraSocket(t.Context())
	require.NoError(t, err)
	other := exec.Command(env.Tool(t, "socat"), "-u", "UNIX-CONNECT:"+extra, "STDOUT")
	greeting, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	_, err = greeting.Read(make([]byte, 1))
	require.NoError(t, err)

	prompt := signKilled(t, h, alice)
	if !keepsPrompts(t, alice) {
		eventually(t, func() bool { return !prompt.Running() })
		require.Empty(t, u.all())
		return
	}
	require.Equal(t, &AbandonedError{}, u.wait(t, 1)[0])
	what, why := u.Health()
	require.Equal(t, Blocked, what)
	require.Equal(t, &AbandonedError{}, why)
	require.True(t, prompt.Running(), "it may be the other program's")

	require.NoError(t, alice.SetPinentry(gpghome.PinentryAnswers("secret")))
	var signing sync.WaitGroup
	signing.Go(func() { assert.NoError(t, h.sign(t, alice)) })
	require.Equal(t, &AbandonedError{Waits: true}, u.wait(t, 2)[1])
	require.NoError(t, exec.Command("kill", "-INT", strconv.Itoa(prompt.PID)).Run()) // the user cancels it
	signing.Wait()
	eventually(t, func() bool { what, _ := u.Health(); return what == None })
	require.Len(t, u.all(), 2)
}

// TestPromptOfAContainer: a gpg in another network namespace uses the agent's socket and needs
// a prompt. The kernel does not list its connection here, but the agent counts it: the prompt
// is not taken for that of a gpg on the host that waited behind it and was killed.
func TestPromptOfAContainer(t *testing.T) {
	t.Parallel()
	alice, h := newAskingLaptop(t), newHost(t, &fakesshd.Server{})
	stats := NewStats(func() {})
	local := alice.local()
	u := start(t, connect(t, h.config), local, Options{timing: quick, Stats: stats})
	u.requireVerified(t)
	ctx, cancel := context.WithCancel(t.Context())
	var signing sync.WaitGroup
	defer signing.Wait()
	defer cancel()
	contained := exec.CommandContext(ctx, env.Tool(t, "gpg"), "--batch", "--no-tty", "-u", alice.key.Fingerprint, "--detach-sign", "-o", "-")
	contained.Env, contained.Stdin = alice.Env(), strings.NewReader("hello\n")
	contained.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
	}
	require.NoError(t, contained.Start())
	defer func() { cancel(); _ = contained.Wait() }()
	prompt, err := alice.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	time.Sleep(2 * promptSlack) // it is older than what follows
	require.NoError(t, local.Agent.Identity(t.Context(), func(id agentside.Identity) error {
		eventually(t, func() bool { // the bridge's own connections come and go
			clients, counted, err := clientsOf(t.Context(), id)
			require.NoError(t, err)
			require.True(t, counted != countTold || clients.Foreign > 0)
			return counted == countTold
		})
		return nil
	}))

	sign := func(ctx context.Context) {
		_, _, _ = h.Gpg(ctx, strings.NewReader("hello\n"), "--no-autostart", "-u", alice.key.Fingerprint, "--detach-sign", "-o", "-")
	}
	killed, kill := context.WithCancel(ctx)
	defer kill()
	signing.Go(func() { sign(killed) })
	using := func() bool { return stats.Counts().Pending > 0 }
	eventually(t, using)
	kill()
	eventually(t, func() bool { return !using() })
	signing.Go(func() { sign(ctx) })
	if keepsPrompts(t, alice) {
		waits := func(err error) bool {
			told, ok := errors.AsType[*AbandonedError](err)
			return ok && told.Waits
		}
		eventually(t, func() bool { return slices.ContainsFunc(u.all(), waits) })
	} else {
		eventually(t, using)
	}
	require.True(t, prompt.Running())
}
