package ports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/config"
)

// Events are called when something happens to port forwards while they run, from any
// goroutine. They must not block for ever.
type Events struct {
	Log *slog.Logger // not nil

	// Failed gets the error of a connection that could not be passed on.
	Failed func(error)
	// Allocated gets the port that the server chose for a RemoteForward of
	// port 0.
	Allocated func(spec config.ForwardSpec, port int)
}

// A FailedError says that a forward of the configuration could not be
// set up.
type FailedError struct {
	Spec   config.ForwardSpec
	Remote bool  // it is the server that does not listen
	Err    error // nil where the server gave no reason
	Fatal  bool  // it ends the program (ExitOnForwardFailure)
}

// Error uses ssh's words (channels.c, ssh_confirm_remote_forward in ssh.c).
func (e *FailedError) Error() string {
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

func (e *FailedError) Unwrap() error { return e.Err }

// SSHSays is usertext.Spoken (channel_setup_fwd_listener_tcpip in channels.c,
// ssh_confirm_remote_forward in ssh.c).
func (e *FailedError) SSHSays() (words []usertext.Message, complete bool) {
	listen := e.Spec.Listen
	what := fmt.Sprintf("port %d", listen.Port)
	if listen.Path != "" {
		what = "path " + usertext.Line(listen.Path)
	}
	switch {
	case e.Remote && e.Fatal:
		return []usertext.Message{{Level: usertext.Fatal, Text: "Error: remote port forwarding failed for listen " + what}}, e.Err == nil
	case e.Remote:
		return []usertext.Message{{Level: usertext.Info, Text: "Warning: remote port forwarding failed for listen " + what}}, e.Err == nil
	case listen.Path != "":
		words = []usertext.Message{{Level: usertext.Error, Text: fmt.Sprintf("unix_listener: cannot bind to path %s: %s", usertext.Line(listen.Path), usertext.SystemWords(e.Err))}}
	default:
		words = []usertext.Message{
			{Level: usertext.Error, Text: fmt.Sprintf("bind [%s]:%d: %s", cmp.Or(listen.Host, "127.0.0.1"), listen.Port, usertext.SystemWords(e.Err))},
			{Level: usertext.Error, Text: fmt.Sprintf("channel_setup_fwd_listener_tcpip: cannot listen to port: %d", listen.Port)},
		}
	}
	level := usertext.Error
	if e.Fatal {
		level = usertext.Fatal
	}
	last := usertext.Message{Level: level, Text: "Could not request local forwarding."}
	return append(words, last), true
}

// Hint says what to do.
func (e *FailedError) Hint() string {
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

// forwards are the forwards of a configuration on one connection, with the
// goroutines that listen and copy. These end with the connection, and the Client
// waits for them.
type forwards struct {
	client *sshfwd.Client
	specs  config.Forwards
	events Events
	ctx    context.Context // ends with the connection
	slots  chan struct{}   // one token per connection of any forward
	wg     sync.WaitGroup

	mu    sync.Mutex
	ended bool // the connection has ended: no wg.Go any more

	granting sync.RWMutex                           // write-locked while the server is asked for a port
	handling bool                                   // handleChannels has been called; for writers of granting
	ports    map[config.Endpoint]config.ForwardSpec // those that the server listens at
}

// Open sets up the forwards of specs and returns an error for each that failed: a
// *FailedError, or net.ErrClosed once if the connection has ended. When it returns, the
// local ones listen here, and the remote ones on the server. They run until the connection
// ends, with at most sshfwd.DefaultMaxConns connections in all. ctx bounds the requests
// only. It is called once for a Client.
func Open(ctx context.Context, c *sshfwd.Client, specs config.Forwards, events Events) []error {
	if specs.IsEmpty() {
		return nil
	}
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &forwards{
		client: c, specs: specs, events: events, ctx: running,
		slots: make(chan struct{}, sshfwd.DefaultMaxConns),
		ports: make(map[config.Endpoint]config.ForwardSpec),
	}
	if !c.Go(func() { f.endWithConnection(cancel) }) {
		cancel(net.ErrClosed)
		return []error{net.ErrClosed}
	}
	var failed []error
	for _, spec := range append(specs.Local, specs.Dynamic...) {
		if err := f.listen(ctx, spec); err != nil {
			failed = append(failed, &FailedError{Spec: spec, Err: err})
		}
	}
	for _, spec := range specs.Remote {
		if err := f.ask(ctx, spec); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// endWithConnection ends everything when the connection has ended.
func (f *forwards) endWithConnection(cancel context.CancelCauseFunc) {
	<-f.client.Ended()
	cancel(sshfwd.ErrConnectionEnded)
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.wg.Wait()
}

// spawn runs work in a goroutine of f, or returns false if the connection has
// ended.
func (f *forwards) spawn(work func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.wg.Go(work)
	return true
}

// connect has the server connect to target, and returns the channel to it.
func (f *forwards) connect(target config.Endpoint, origin net.Addr) (*sshfwd.Conn, error) {
	if target.Path != "" {
		return f.client.OpenUnix(f.ctx, target.Path)
	}
	payload := sshfwd.TCPChannel{Host: target.Host, Port: uint32(target.Port), OriginHost: "127.0.0.1", OriginPort: 65535}
	if tcp, ok := origin.(*net.TCPAddr); ok {
		payload.OriginHost, payload.OriginPort = tcp.IP.String(), uint32(tcp.Port)
	}
	conn, err := f.client.Open(f.ctx, "direct-tcpip", ssh.Marshal(payload))
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("the server cannot connect to %q (it says %.200q)", target, refused.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", target, err)
	}
	return conn, nil
}

// failed reports err, unless the connection has ended.
func (f *forwards) failed(err error) {
	if f.ctx.Err() == nil {
		f.events.Failed(err)
	}
}
