//go:build unix

package bridge

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/config"
)

const (
	// within bounds the wait for something that must happen.
	within = 30 * time.Second
	tick   = 5 * time.Millisecond
)

// eventually waits for a condition. It starts no goroutine, since some conditions count them.
func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !condition(); time.Sleep(tick) {
		require.True(t, time.Now().Before(deadline), "it did not happen")
	}
}

// quick is a timing with many looks in the time of a test. Its patience is still far longer
// than a comment takes to arrive.
var quick = timing{
	interval: 20 * time.Millisecond, patience: time.Second, closing: time.Second,
	agent: 10 * time.Millisecond, pause: 10 * time.Millisecond, calm: time.Hour, retake: within,
}

// A laptop is a local side with a key.
type laptop struct {
	*gpghome.Home
	key gpghome.Key
}

func newLaptop(t testing.TB) *laptop {
	t.Helper()
	home := gpghome.ForTest(t)
	key, err := home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Alice <alice@example.org>"})
	require.NoError(t, err)
	return &laptop{home, key}
}

func (l *laptop) local() *Local {
	return &Local{
		Agent:   &agentside.Agent{Locator: &agentside.Locator{Env: l.Env()}},
		Keyring: agentside.Keyring{Env: l.Env()},
	}
}

// A host is a GnuPG home behind the embedded SSH server, which is reached through a cable.
type host struct {
	*gpghome.Home
	server *fakesshd.Server
	cable  *cable
	config string // an ssh_config with `Host host`
	socket string // where its gpg looks for the agent
}

func newHost(t testing.TB, server *fakesshd.Server) *host {
	t.Helper()
	h := &host{Home: gpghome.ForTest(t), server: server}
	var err error
	h.socket, err = h.AgentSocket(t.Context())
	require.NoError(t, err)
	key, signer := sshkeys.NewFile(t)
	server.Env = append(h.Env(), "HOME="+h.Dir())
	server.AuthorizedKeys = []ssh.PublicKey{signer.PublicKey()}
	fakesshd.Start(t, server)
	h.cable = newCable(t, server.Addr())
	h.config = sshkeys.WriteConfig(t, key, h.cable.addr(), server.HostKey.PublicKey())
	return h
}

// sign signs with the host's gpg, which starts no agent.
func (h *host) sign(t testing.TB, by *laptop) error {
	t.Helper()
	_, _, err := h.Gpg(t.Context(), strings.NewReader("hello\n"), "--no-autostart", "-u", by.key.Fingerprint, "--detach-sign", "-o", "-")
	return err
}

// A tap is a link that counts its calls, and lets a test act between two of them.
type tap struct {
	*sshfwd.Client
	beforeForward func(nth int)
	insteadOfDial func(nth int) (path string, after func())

	mu                    sync.Mutex
	runs, dials, forwards int
}

// connect dials as gpg-bridge does.
func connect(t testing.TB, file string) *tap {
	t.Helper()
	resolved, err := config.Resolve(t.Context(), config.To("host", "-F", file).Batch())
	require.NoError(t, err)
	client, err := sshfwd.Dial(t.Context(), resolved, sshfwd.DialOptions{Log: quiet})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = client.Wait()
	})
	return &tap{Client: client}
}

func (l *tap) count(what *int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	*what++
	return *what
}

func (l *tap) seen(what *int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *what
}

func (l *tap) Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error {
	l.count(&l.runs)
	return l.Client.Run(ctx, command, stdin, stdout, stderr)
}

func (l *tap) DialUnix(ctx context.Context, path string) (link.Conn, error) {
	after := func() {}
	if nth := l.count(&l.dials); l.insteadOfDial != nil {
		if other, then := l.insteadOfDial(nth); other != "" {
			path, after = other, then
		}
	}
	defer after()
	return l.Client.DialUnix(ctx, path)
}

func (l *tap) Forward(ctx context.Context, path string, serve func(context.Context, link.Conn)) (link.Forward, error) {
	if nth := l.count(&l.forwards); l.beforeForward != nil {
		l.beforeForward(nth)
	}
	return l.Client.Forward(ctx, path, serve)
}

// waitLooks returns when the bridge has looked n times more.
func (l *tap) waitLooks(t testing.TB, n int) {
	t.Helper()
	until := l.seen(&l.dials) + n + 1 // the first may be under way
	eventually(t, func() bool { return l.seen(&l.dials) >= until })
}

var quiet = slog.New(slog.DiscardHandler)

// warnings are what the user was told.
type warnings struct {
	mu   sync.Mutex
	errs []error
}

func (w *warnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *warnings) all() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.errs)
}

// wait returns the warnings once there are n of them, and fails if there are
// more.
func (w *warnings) wait(t testing.TB, n int) []error {
	t.Helper()
	eventually(t, func() bool { return len(w.all()) >= n })
	all := w.all()
	require.Len(t, all, n)
	return all
}

// up is a bridge that a test has brought up.
type up struct {
	*Bridge
	warnings
}

// tryStart checks the local side and starts a bridge.
func tryStart(t testing.TB, over *tap, local *Local, options Options) (*up, error) {
	t.Helper()
	return tryStartWith(t, over, local, local.Check(t.Context()), options)
}

func tryStartWith(t testing.TB, over *tap, local *Local, found Finding, options Options) (*up, error) {
	t.Helper()
	u := &up{}
	options.Warn, options.Log = u.add, quiet
	var err error
	u.Bridge, err = Start(t.Context(), over, local, found, options)
	return u, err
}

// start starts a bridge, and closes it when the test ends unless the test has.
func start(t testing.TB, over *tap, local *Local, options Options) *up {
	t.Helper()
	u, err := tryStart(t, over, local, options)
	require.NoError(t, err)
	u.endWith(t)
	return u
}

func (u *up) endWith(t testing.TB) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		_ = u.Close(ctx)
	})
}

func (u *up) close(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	require.NoError(t, u.Close(ctx))
}

func (u *up) requireVerified(t testing.TB) {
	t.Helper()
	require.NoError(t, u.Verified(t.Context()))
}
