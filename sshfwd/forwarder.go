package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// The names of OpenSSH's PROTOCOL section 2.4.
const (
	forwardRequest   = "streamlocal-forward@openssh.com"
	cancelRequest    = "cancel-streamlocal-forward@openssh.com"
	forwardedChannel = "forwarded-streamlocal@openssh.com"
)

// DefaultMaxConns is how many forwarded connections a Client holds at once
// where ForwarderConfig says nothing.
const DefaultMaxConns = 4096

// ForwarderConfig is what a Forwarder may be told.
type ForwarderConfig struct {
	// MaxConns bounds the connections that all forwards of the Client hold
	// together, those included that we have closed and the server has not.
	// Beyond it the server is told "resource shortage". 0 is DefaultMaxConns.
	MaxConns int
}

// ErrForwarderTaken is returned by a second call of Client.Forwarder.
var ErrForwarderTaken = errors.New("this connection has its forwarder already")

// A Forwarder is the one dispatcher of a Client's forwarded connections: it
// receives every channel that the server opens for any forwarded socket and
// gives it to the Forward of that path. A channel for any other path is
// rejected; every other channel type is rejected by x/crypto.
//
// It stands in for ssh.Client.ListenUnix, which registers its listener after
// the grant, so that connections that come at once are lost (golang/go#64094),
// and which stops the whole connection when nobody accepts (golang/go#77035).
//
// Its goroutines: one loop, one per channel, one per request under way. All
// end with the connection; Wait returns then.
type Forwarder struct {
	conn  *ssh.Client
	log   *slog.Logger
	slots chan struct{} // one token per channel that is not over
	wg    sync.WaitGroup

	mu       sync.Mutex
	ended    bool // the connection has ended: wg.Go is over
	forwards map[string]*Forward
}

// Forwarder returns the dispatcher of c's forwards. It can be called once per
// Client, because the handler of a channel type can be registered once
// (ssh.Client.HandleChannelOpen): a second call is ErrForwarderTaken.
func (c *Client) Forwarder(config ForwarderConfig) (*Forwarder, error) {
	if config.MaxConns <= 0 {
		config.MaxConns = DefaultMaxConns
	}
	in := c.conn.HandleChannelOpen(forwardedChannel)
	if in == nil {
		return nil, ErrForwarderTaken
	}
	r := &Forwarder{
		conn:     c.conn,
		log:      c.log,
		slots:    make(chan struct{}, config.MaxConns),
		forwards: make(map[string]*Forward),
	}
	r.wg.Go(func() { r.loop(in) })
	return r, nil
}

// Wait returns when the connection has ended, and with it every goroutine of
// the Forwarder and every serve call.
func (r *Forwarder) Wait() { r.wg.Wait() }

// Forward asks the server to listen on path, absolute on its host, and calls
// serve for each connection there, in a goroutine of its own. The Conn is
// closed when serve returns. The ctx of serve carries ctx's values and ends
// when the Forward is closed or the connection ends; ctx itself bounds the
// request only. serve must return soon after its Conn is closed: Close waits.
//
// serve may be called before Forward returns: the server listens before its
// reply arrives.
//
// A *ForwardRefusedError says that the server refused, a *RemotePathError that
// it was not asked. If ctx ends first, the
// request is withdrawn as soon as it is granted; until then the path cannot be
// forwarded again.
func (r *Forwarder) Forward(ctx context.Context, path string, serve func(ctx context.Context, conn Conn)) (*Forward, error) {
	if !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) {
		return nil, &RemotePathError{Path: path}
	}
	f := newForward(ctx, r, path, serve)
	if err := r.add(f); err != nil {
		return nil, fmt.Errorf("forward %q: %w", path, err)
	}
	granted := make(chan error, 1)
	if !r.spawn(func() { granted <- r.request(f) }) {
		return nil, fmt.Errorf("forward %q: %w", path, net.ErrClosed)
	}
	select {
	case err := <-granted:
		if err != nil {
			f.shut(err)
			f.Wait()
			return nil, err
		}
		return f, nil
	case <-ctx.Done():
		f.abandon(context.Cause(ctx))
		return nil, fmt.Errorf("forward %q: %w", path, context.Cause(ctx))
	}
}

// request asks for f and waits for the answer. It withdraws a grant that
// nobody waits for any more.
func (r *Forwarder) request(f *Forward) error {
	ok, _, err := r.conn.SendRequest(forwardRequest, true, ssh.Marshal(struct{ Path string }{f.path}))
	if err != nil || !ok {
		r.remove(f)
	}
	if err != nil {
		return fmt.Errorf("forward %q: %w", f.path, err)
	}
	if !ok {
		return &ForwardRefusedError{Path: f.path, Advice: adviceFor(string(r.conn.ServerVersion()))}
	}
	if !f.grant() {
		_, _, _ = r.conn.SendRequest(cancelRequest, false, ssh.Marshal(struct{ Path string }{f.path}))
		r.remove(f)
	}
	return nil
}

// spawn runs work in a goroutine of r, or returns false if the connection has
// ended.
func (r *Forwarder) spawn(work func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.wg.Go(work)
	return true
}

func (r *Forwarder) add(f *Forward) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return net.ErrClosed
	}
	if r.forwards[f.path] != nil {
		return errors.New("this path is forwarded already")
	}
	r.forwards[f.path] = f
	return nil
}

func (r *Forwarder) remove(f *Forward) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forwards[f.path] == f {
		delete(r.forwards, f.path)
	}
}

// loop gives each channel to its forward, until the connection ends. It does
// not block, or the whole connection would: only a rejection is written here,
// which waits for the link like everything that answers on it.
func (r *Forwarder) loop(in <-chan ssh.NewChannel) {
	for newCh := range in {
		r.dispatch(newCh)
	}
	r.mu.Lock()
	r.ended = true
	forwards := r.forwards
	r.forwards = nil
	r.mu.Unlock()
	for _, f := range forwards {
		f.shut(errConnectionEnded)
	}
	for _, f := range forwards {
		f.Wait()
	}
}

func (r *Forwarder) dispatch(newCh ssh.NewChannel) {
	var payload struct {
		Path     string
		Reserved string
	}
	if err := ssh.Unmarshal(newCh.ExtraData(), &payload); err != nil {
		_ = newCh.Reject(ssh.Prohibited, "malformed request")
		return
	}
	r.mu.Lock()
	f := r.forwards[payload.Path]
	r.mu.Unlock()
	if f == nil || f.isOver() {
		r.log.Debug("rejected a forwarded channel for a path not asked for", "path", payload.Path)
		_ = newCh.Reject(ssh.Prohibited, "no such forward")
		return
	}
	select {
	case r.slots <- struct{}{}:
		r.wg.Go(func() {
			defer func() { <-r.slots }()
			f.handle(newCh)
		})
	default:
		r.log.Debug("rejected a forwarded channel: too many", "path", payload.Path, "max", cap(r.slots))
		_ = newCh.Reject(ssh.ResourceShortage, "too many connections")
	}
}
