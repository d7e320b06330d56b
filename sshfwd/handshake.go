package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// loginTimeout is what the server and the network get for the log-in, and
	// for the key exchange if there is no ConnectTimeout: sshd's own
	// LoginGraceTime. It does not count what we ask the user.
	loginTimeout = 2 * time.Minute
	// maxBanner bounds what a server may show before it has let the user in:
	// its banners, and apart from them its questions.
	maxBanner = 64 << 10
)

// handshake is one connection from the version exchange to the end of the
// log-in.
type handshake struct {
	ctx    context.Context // done when run has returned
	parent context.Context
	cancel context.CancelFunc
	config *Config
	wire   net.Conn
	tap    *kexTap // below SSH, above wire
	clock  *handshakeClock
	policy *hostKeyPolicy
	auth   *authenticator

	prompter Prompter // nil, or pauses the clock
	banner   int      // bytes shown

	mu      sync.Mutex
	refused error // what policy said of the host key
}

func newHandshake(ctx context.Context, c *Config, wire net.Conn, p Prompter, log *slog.Logger) *handshake {
	h := &handshake{parent: ctx, config: c, wire: wire, tap: &kexTap{Conn: newHeldGuard(wire, maxHeld)}}
	h.ctx, h.cancel = context.WithCancel(ctx)
	limit := c.ConnectTimeout
	if limit <= 0 {
		limit = loginTimeout
	}
	h.clock = newHandshakeClock(limit, func() { _ = wire.Close() })
	if p != nil {
		h.prompter = &pausingPrompter{p, h.clock}
	}
	h.policy = newHostKeyPolicy(h.ctx, c, h.prompter, log)
	h.auth = newAuthenticator(h.ctx, c, h.prompter, h.clock, log)
	h.auth.tap = h.tap
	return h
}

func (h *handshake) run() (*ssh.Client, error) {
	defer h.cancel()
	defer h.clock.stop()
	defer h.auth.close()
	config, err := h.clientConfig()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(h.parent, func() { _ = h.wire.Close() })
	addr := net.JoinHostPort(h.config.Hostname, strconv.Itoa(h.config.Port))
	conn, channels, requests, err := ssh.NewClientConn(h.tap, addr, config)
	if !stop() && err == nil {
		_ = conn.Close()
		err = context.Cause(h.parent)
	}
	if err != nil {
		return nil, h.explain(err)
	}
	h.auth.succeeded()
	return ssh.NewClient(conn, channels, requests), nil
}

// agentForward is what the Client needs to forward the agent of this user to
// this host.
func (h *handshake) agentForward(sessionID []byte) *agentForward {
	f := &agentForward{socket: h.config.forwardedAgent(), log: h.auth.log}
	if binding, err := h.tap.binding(sessionID); err == nil {
		f.binding = binding
	}
	return f
}

// explain finds the cause among what x/crypto reports: it may only have seen
// that the connection was closed.
func (h *handshake) explain(err error) error {
	h.mu.Lock()
	refused := h.refused
	h.mu.Unlock()
	switch {
	case h.parent.Err() != nil:
		return context.Cause(h.parent)
	case refused != nil:
		return refused
	case h.auth.failure != nil:
		return h.auth.failure
	case h.clock.hasExpired():
		err = ErrNoAnswer
	default:
		if inner := errors.Unwrap(err); inner != nil { // "ssh: handshake failed: "
			err = inner
		}
	}
	if h.auth.started {
		return h.auth.denied(err)
	}
	return &HandshakeError{Host: h.config.Hostname, Port: h.config.Port, Err: err}
}

func (h *handshake) clientConfig() (*ssh.ClientConfig, error) {
	secure, insecure := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	config := &ssh.ClientConfig{
		User: h.config.User, AuthCallback: h.auth.next,
		HostKeyCallback: h.checkHostKey, BannerCallback: h.showBanner,
	}
	hostKeys := h.config.HostKeyAlgorithms
	if hostKeys == nil {
		hostKeys = splitCommas(fallbackDefaults().get("hostkeyalgorithms"))
	}
	for _, l := range []struct {
		name  string
		want  []string
		known []string
		to    *[]string
	}{
		{"KexAlgorithms", h.config.KexAlgorithms, slices.Concat(secure.KeyExchanges, insecure.KeyExchanges), &config.KeyExchanges},
		{"Ciphers", h.config.Ciphers, slices.Concat(secure.Ciphers, insecure.Ciphers), &config.Ciphers},
		{"MACs", h.config.MACs, slices.Concat(secure.MACs, insecure.MACs), &config.MACs},
		{"HostKeyAlgorithms", hostKeys, slices.Concat(secure.HostKeys, insecure.HostKeys), &config.HostKeyAlgorithms},
	} {
		list, err := restrict(l.name, l.want, l.known)
		if err != nil {
			return nil, err
		}
		*l.to = list
	}
	var err error
	config.HostKeyAlgorithms, err = h.policy.order(config.HostKeyAlgorithms)
	return config, err
}

// restrict leaves out the names that x/crypto does not know; nil stays nil, for
// x/crypto's own choice.
func restrict(option string, want, known []string) ([]string, error) {
	var list []string
	for _, name := range want {
		if slices.Contains(known, name) {
			list = append(list, name)
		}
	}
	if len(list) == 0 && len(want) > 0 {
		return nil, &ConfigError{
			Problem: fmt.Sprintf("none of the %s in the configuration is supported", option),
			Advice:  fmt.Sprintf("add one of them for this host: %v", known),
		}
	}
	return list, nil
}

func (h *handshake) checkHostKey(host string, remote net.Addr, key ssh.PublicKey) error {
	err := h.policy.check(host, remote, key)
	h.mu.Lock()
	h.refused = err
	h.mu.Unlock()
	h.clock.restart(loginTimeout)
	return err
}

// showBanner shows what the server says before the log-in (RFC 4252, 5.4), as
// ssh does from LogLevel INFO on.
func (h *handshake) showBanner(text string) error {
	quiet := slices.Contains([]string{"QUIET", "SILENT", "FATAL", "ERROR"}, h.config.LogLevel)
	text = text[:min(len(text), maxBanner-h.banner)]
	if h.prompter == nil || quiet || text == "" {
		return nil
	}
	h.banner += len(text)
	h.prompter.Notice(Printable(text))
	return nil
}

// pausingPrompter stops the clock while the user thinks.
type pausingPrompter struct {
	Prompter
	clock *handshakeClock
}

func (p *pausingPrompter) AskSecret(ctx context.Context, prompt string) (secret []byte, err error) {
	p.clock.pause(func() { secret, err = p.Prompter.AskSecret(ctx, prompt) })
	return secret, err
}

func (p *pausingPrompter) Confirm(ctx context.Context, question string) (yes bool) {
	p.clock.pause(func() { yes = p.Prompter.Confirm(ctx, question) })
	return yes
}

func (p *pausingPrompter) Ask(ctx context.Context, text string) (answer string, err error) {
	p.clock.pause(func() { answer, err = p.Prompter.Ask(ctx, text) })
	return answer, err
}
