package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// ForwardEvents is told what happens to port forwards while they run. Its
// functions may be called from any goroutine, and must not block for ever.
type ForwardEvents struct {
	// Failed tells of a connection that could not be passed on.
	Failed func(error)
	// Allocated tells the port that the server chose for a RemoteForward of
	// port 0.
	Allocated func(spec ForwardSpec, port int)
}

// A ForwardFailedError says that a forward of the configuration could not be
// set up.
type ForwardFailedError struct {
	Spec   ForwardSpec
	Remote bool  // the server does not listen
	Err    error // nil where the server gave no reason
}

// Error has ssh's words (channels.c, ssh_confirm_remote_forward in ssh.c).
func (e *ForwardFailedError) Error() string {
	what := fmt.Sprintf("port %d", e.Spec.Listen.Port)
	if e.Spec.Listen.Path != "" {
		what = fmt.Sprintf("path %q", e.Spec.Listen.Path)
	}
	switch {
	case e.Remote && e.Err == nil:
		return "remote port forwarding failed for listen " + what
	case e.Remote:
		return fmt.Sprintf("remote port forwarding failed for listen %s: %v", what, e.Err)
	}
	return fmt.Sprintf("cannot listen to %s: %v", what, e.Err)
}

func (e *ForwardFailedError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ForwardFailedError) Hint() string {
	switch {
	case e.Remote && e.Err != nil:
		return "take this RemoteForward out of ssh_config, or -R off the command line"
	case e.Remote:
		return "the port or socket may be taken on the host, or AllowTcpForwarding or AllowStreamLocalForwarding forbids it"
	case e.Spec.Listen.Path != "":
		return "remove the file if nothing uses it, or set StreamLocalBindUnlink yes"
	}
	return "choose another port, or end what listens there"
}

// portForwards are the forwards of a configuration on one connection, with the
// goroutines that listen and copy. All end with the connection; the Client
// waits for them.
type portForwards struct {
	client *Client
	specs  ForwardSpecs
	events ForwardEvents
	ctx    context.Context // ends with the connection
	slots  chan struct{}   // one token per connection of any forward
	wg     sync.WaitGroup

	mu    sync.Mutex
	ended bool // the connection has ended: wg.Go is over

	granting sync.RWMutex // held while ports are asked for
	handling bool         // the server's channels come to us
	ports    map[Endpoint]ForwardSpec
}

// OpenForwards sets up the forwards of specs and returns those that failed, as
// *ForwardFailedError. The local ones listen, and the server listens for the
// remote ones, when it returns. They run until the connection ends, with at
// most DefaultMaxConns connections together. ctx bounds the requests only.
// A Client opens forwards once.
func (c *Client) OpenForwards(ctx context.Context, specs ForwardSpecs, events ForwardEvents) []error {
	if specs.IsEmpty() {
		return nil
	}
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &portForwards{
		client: c, specs: specs, events: events, ctx: running,
		slots: make(chan struct{}, DefaultMaxConns),
		ports: make(map[Endpoint]ForwardSpec),
	}
	if !c.own(func() { f.live(cancel) }) {
		cancel(net.ErrClosed)
		return []error{net.ErrClosed}
	}
	var failed []error
	for _, spec := range append(specs.Local, specs.Dynamic...) {
		if err := f.listen(ctx, spec); err != nil {
			failed = append(failed, &ForwardFailedError{Spec: spec, Err: err})
		}
	}
	for _, spec := range specs.Remote {
		if err := f.ask(ctx, spec); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// live ends everything when the connection has ended.
func (f *portForwards) live(cancel context.CancelCauseFunc) {
	_ = f.client.conn.Wait()
	cancel(errConnectionEnded)
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.wg.Wait()
}

// spawn runs work in a goroutine of f, or returns false if the connection has
// ended.
func (f *portForwards) spawn(work func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.wg.Go(work)
	return true
}

// A tcpChannel is the payload that opens a direct-tcpip or forwarded-tcpip
// channel (RFC 4254 section 7.2).
type tcpChannel struct {
	Host       string
	Port       uint32
	OriginHost string
	OriginPort uint32
}

// connect opens a channel to target, on the server's side.
func (f *portForwards) connect(target Endpoint, origin net.Addr) (*channelConn, error) {
	if target.Path != "" {
		conn, err := f.client.DialUnix(f.ctx, target.Path)
		if err != nil {
			return nil, err
		}
		return conn.(*channelConn), nil
	}
	payload := tcpChannel{Host: target.Host, Port: uint32(target.Port), OriginHost: "127.0.0.1", OriginPort: 65535}
	if tcp, ok := origin.(*net.TCPAddr); ok {
		payload.OriginHost, payload.OriginPort = tcp.IP.String(), uint32(tcp.Port)
	}
	ch, reqs, err := f.client.openChannel(f.ctx, "direct-tcpip", ssh.Marshal(payload))
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("the server cannot connect to %q (it says %.200q)", target, refused.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", target, err)
	}
	return newChannelConn(ch, reqs), nil
}

// failed reports err, unless everything is over.
func (f *portForwards) failed(err error) {
	if f.ctx.Err() == nil {
		f.events.Failed(err)
	}
}
