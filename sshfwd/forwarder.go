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

	"gpg-bridge/internal/link"
)

// The names of OpenSSH's PROTOCOL section 2.4.
const (
	forwardRequest   = "streamlocal-forward@openssh.com"
	cancelRequest    = "cancel-streamlocal-forward@openssh.com"
	forwardedChannel = "forwarded-streamlocal@openssh.com"
)

// DefaultMaxConns is how many connections all forwarded sockets of a Client may have
// together, including those that we have closed and the server has not. Further ones are
// refused with "resource shortage".
const DefaultMaxConns = 4096

// ErrTaken says that the channels of a type are being received by somebody else already.
var ErrTaken = errors.New("this connection has its forwarder already")

// A forwarder is the one dispatcher of a Client's forwarded connections: it
// receives every channel that the server opens for any forwarded socket, and
// gives it to the Forward of that path. A channel for any other path is
// rejected; every other channel type is rejected by x/crypto.
//
// It replaces ssh.Client.ListenUnix, which registers its listener after
// the grant, so that connections that come at once are lost (golang/go#64094),
// and which stops the whole connection when nobody accepts (golang/go#77035).
//
// Its goroutines: one loop, one per channel, one per request in progress. All
// end with the connection; Wait returns then.
type forwarder struct {
	conn     *ssh.Client
	conns    *connList
	whyEnded func() error // the Client's
	answered func()       // is called when the server has answered a request for a socket
	log      *slog.Logger
	slots    chan struct{} // one token per channel that has not ended
	wg       sync.WaitGroup

	mu       sync.Mutex
	forwards map[string]*Forward // nil when the connection has ended: no wg.Go any more
}

// newForwarder returns the dispatcher of c's forwards, for at most maxConns connections. It
// can be called once per Client, because the handler of a channel type can be registered
// once (ssh.Client.HandleChannelOpen): the error of a second call is ErrTaken.
func (c *Client) newForwarder(maxConns int) (*forwarder, error) {
	in, err := c.Incoming(forwardedChannel)
	if err != nil {
		return nil, err
	}
	r := &forwarder{
		conn:     c.conn,
		conns:    &c.conns,
		whyEnded: c.whyEnded,
		answered: c.use,
		log:      c.log,
		slots:    make(chan struct{}, maxConns),
		forwards: make(map[string]*Forward),
	}
	r.wg.Go(func() { r.loop(in) })
	return r, nil
}

// Wait returns when the connection has ended, and with it every goroutine of
// the forwarder and every serve call.
func (r *forwarder) Wait() { r.wg.Wait() }

// Forward is Client.ForwardUnix.
func (r *forwarder) Forward(ctx context.Context, path string, serve func(ctx context.Context, conn *Conn)) (*Forward, error) {
	if !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) {
		return nil, &link.PathError{Path: path}
	}
	f := newForward(ctx, r, path, serve)
	err := r.add(f)
	if errors.Is(err, net.ErrClosed) {
		err = r.whyEnded()
	}
	if err != nil {
		return nil, fmt.Errorf("forward %q: %w", path, err)
	}
	granted := make(chan error, 1)
	if !r.spawn(func() { granted <- r.request(f) }) {
		return nil, fmt.Errorf("forward %q: %w", path, r.whyEnded())
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

// request asks the server for f and waits for the answer. If nobody wants f any more when
// it is granted, it is cancelled.
func (r *forwarder) request(f *Forward) error {
	ok, _, err := r.conn.SendRequest(forwardRequest, true, ssh.Marshal(struct{ Path string }{f.path}))
	r.answered()
	if err != nil || !ok {
		r.remove(f)
	}
	if err != nil {
		return fmt.Errorf("forward %q: %w", f.path, r.whyEnded())
	}
	if !ok {
		return &link.RefusedError{Path: f.path, Advice: adviceFor(string(r.conn.ServerVersion()))}
	}
	if !f.grant() {
		_, _, _ = r.conn.SendRequest(cancelRequest, false, ssh.Marshal(struct{ Path string }{f.path}))
		r.remove(f)
	}
	return nil
}

// spawn runs work in a goroutine of r, or returns false if the connection has
// ended.
func (r *forwarder) spawn(work func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forwards == nil {
		return false
	}
	r.wg.Go(work)
	return true
}

func (r *forwarder) add(f *Forward) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forwards == nil {
		return net.ErrClosed
	}
	if r.forwards[f.path] != nil {
		return errors.New("this path is forwarded already")
	}
	r.forwards[f.path] = f
	return nil
}

func (r *forwarder) remove(f *Forward) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forwards[f.path] == f {
		delete(r.forwards, f.path)
	}
}

// loop gives each channel to its Forward, until the connection ends. It must not block,
// since the whole connection would. It only writes rejections, which wait for the link as
// all answers do.
func (r *forwarder) loop(in <-chan ssh.NewChannel) {
	for newCh := range in {
		r.dispatch(newCh)
	}
	r.mu.Lock()
	forwards := r.forwards
	r.forwards = nil
	r.mu.Unlock()
	for _, f := range forwards {
		f.shut(ErrConnectionEnded)
	}
	for _, f := range forwards {
		f.Wait()
	}
}

func (r *forwarder) dispatch(newCh ssh.NewChannel) {
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
