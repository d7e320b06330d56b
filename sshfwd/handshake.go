package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
	"gpg-bridge/sshfwd/login"
	"gpg-bridge/sshfwd/wire"
)

// handshake is one connection from the version exchange to the end of the
// log-in.
type handshake struct {
	parent context.Context // the caller's
	cancel context.CancelFunc
	config *config.Config
	wire   *wire.Conn
	tap    *wire.Tap // between SSH and wire
	clock  *handshakeClock
	policy *hostkey.Policy
	auth   *login.Login
	log    *slog.Logger

	requests <-chan *ssh.Request // the server's global ones; set by run

	prompter usertext.Asker // pauses the clock; nil if nothing may be asked
	banner   int            // bytes shown

	mu      sync.Mutex
	refused error // why policy refused the host key
	hostKey ssh.PublicKey
}

func newHandshake(ctx context.Context, conn *wire.Conn, d *dialer) *handshake {
	c, p := d.config, d.options.Prompter
	h := &handshake{parent: ctx, config: c, log: d.log, wire: conn, tap: wire.NewTap(wire.Guard(wire.SkipToVersion(conn), wire.MaxHeld))}
	running, cancel := context.WithCancel(ctx) // ends when run returns
	h.cancel = cancel
	limit := c.ConnectTimeout
	if limit <= 0 {
		limit = config.LoginTimeout
	}
	h.clock = newHandshakeClock(limit, func() { _ = conn.Close() })
	if p != nil {
		h.prompter = &pausingPrompter{p, h.clock}
	}
	h.policy = hostkey.New(running, c, h.prompter, d.options.Stderr, d.log)
	h.auth = login.New(running, login.Options{
		Config: c, Asker: h.prompter, Tap: h.tap, Pause: h.clock.pause,
		StateDir: d.options.StateDir, TokenAsked: d.options.TokenAsked, Log: d.log,
	})
	return h
}

func (h *handshake) run() (*ssh.Client, error) {
	defer h.cancel()
	defer h.clock.stop()
	defer h.auth.Close()
	resolved, err := h.clientConfig()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(h.parent, func() { _ = h.wire.Close() })
	addr := net.JoinHostPort(h.config.Hostname, strconv.Itoa(h.config.Port))
	conn, channels, requests, err := ssh.NewClientConn(h.tap, addr, resolved)
	if !stop() && err == nil {
		_ = conn.Close()
		err = context.Cause(h.parent)
	}
	if err != nil {
		return nil, h.explain(err)
	}
	h.auth.Succeeded()
	h.requests = requests
	none := make(chan *ssh.Request)
	close(none)
	return ssh.NewClient(conn, channels, none), nil
}

// hostKeyUpdates returns what the Client needs for UpdateHostKeys.
func (h *handshake) hostKeyUpdates(c *Client, log *slog.Logger) *hostKeyUpdates {
	u := &hostKeyUpdates{
		client: c, policy: h.policy, mode: h.config.UpdateHostKeys, log: log,
		unasked: make(chan *hostkey.Update, 1),
	}
	if u.mode == config.UpdateAsk && h.config.BatchMode {
		u.mode = config.UpdateNo
	}
	if negotiated, ok := c.conn.Conn.(ssh.AlgorithmsConnMetadata); ok {
		u.algorithm = negotiated.Algorithms().HostKey
	}
	return u
}

// agentForward returns what the Client needs to forward the user's agent to this host.
func (h *handshake) agentForward(sessionID []byte) *agentForward {
	f := &agentForward{socket: h.config.ForwardedAgent(), log: h.log}
	if binding, err := login.NewBinding(h.tap.Reply(), sessionID); err == nil {
		f.binding = binding
	}
	return f
}

// explain returns the cause of an error of x/crypto's, which may only have seen that the
// connection was closed.
func (h *handshake) explain(err error) error {
	h.mu.Lock()
	refused := h.refused
	h.mu.Unlock()
	lost := h.tap.Lost()
	if errors.Is(lost, net.ErrClosed) { // by x/crypto, after err
		lost = nil
	}
	switch {
	case h.parent.Err() != nil:
		return context.Cause(h.parent)
	case refused != nil:
		return refused
	case h.auth.Failure() != nil:
		return h.auth.Failure()
	case h.clock.hasExpired():
		lost, err = ErrNoAnswer, ErrNoAnswer
	case lost != nil && h.auth.HasStarted(): // ssh does not call it denied either
		err = lost
	default:
		if inner := errors.Unwrap(err); inner != nil { // "ssh: handshake failed: "
			err = inner
		}
		err = algorithmError(h.config, err)
	}
	if lost == nil && h.auth.HasStarted() {
		return h.auth.Denied(err)
	}
	return &HandshakeError{
		Host: h.config.Hostname, Port: h.config.Port, Err: err,
		Peer: peerWords(h.wire.RemoteAddr()), IsSilent: h.wire.Received() == 0,
	}
}

// peerWords names the server's end as ssh does: behind a proxy it is not known
// (ssh_remote_ipaddr in packet.c).
func peerWords(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return fmt.Sprintf("%s port %d", tcp.IP, tcp.Port)
	}
	return "UNKNOWN port 65535"
}

func (h *handshake) clientConfig() (*ssh.ClientConfig, error) {
	client := &ssh.ClientConfig{
		User: h.config.User, AuthCallback: h.authenticate,
		HostKeyCallback: h.checkHostKey, BannerCallback: h.showBanner,
	}
	if err := propose(client, h.config); err != nil {
		return nil, err
	}
	var err error
	client.HostKeyAlgorithms, err = h.policy.Order(client.HostKeyAlgorithms)
	return client, err
}

// authenticate is called when the key exchange is over, for each attempt to log in.
func (h *handshake) authenticate(server *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	if a := server.Algorithms; !h.auth.HasStarted() {
		h.log.Debug("algorithms", "kex", a.KeyExchange, "hostkey", a.HostKey, "cipher", a.Write.Cipher, "mac", a.Write.MAC,
			"read_cipher", a.Read.Cipher, "read_mac", a.Read.MAC)
	}
	return h.auth.Next(server)
}

func (h *handshake) checkHostKey(host string, remote net.Addr, key ssh.PublicKey) error {
	err := h.policy.Check(host, remote, key)
	h.mu.Lock()
	h.refused, h.hostKey = err, key
	h.mu.Unlock()
	h.clock.restart(config.LoginTimeout)
	return err
}

// showBanner shows what the server says before the log-in (RFC 4252, 5.4), as
// ssh does from LogLevel INFO on.
func (h *handshake) showBanner(text string) error {
	text = text[:min(len(text), login.MaxBanner-h.banner)]
	if h.prompter == nil || h.config.LogLevel < usertext.Info || text == "" {
		return nil
	}
	h.banner += len(text)
	h.prompter.Banner(usertext.Printable(text))
	return nil
}

// pausingPrompter stops the clock while the user is asked.
type pausingPrompter struct {
	usertext.Asker
	clock *handshakeClock
}

func (p *pausingPrompter) AskSecret(ctx context.Context, prompt string) (secret []byte, err error) {
	p.clock.pause(func() { secret, err = p.Asker.AskSecret(ctx, prompt) })
	return secret, err
}

func (p *pausingPrompter) Confirm(ctx context.Context, question string) (yes bool) {
	p.clock.pause(func() { yes = p.Asker.Confirm(ctx, question) })
	return yes
}

func (p *pausingPrompter) Ask(ctx context.Context, text string) (answer string, err error) {
	p.clock.pause(func() { answer, err = p.Asker.Ask(ctx, text) })
	return answer, err
}
