package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// ErrConnectionEnded is the cause of a context that ends with the SSH connection, and the
// error of what cannot be done any more then.
var ErrConnectionEnded = errors.New("the ssh connection has ended")

// adviceFor explains a refusal by the server's version (RFC 4253, 4.2), "" if it does not.
func adviceFor(version string) string {
	if strings.HasPrefix(version, "SSH-2.0-dropbear") {
		return fmt.Sprintf("the host's SSH server is dropbear (%q), which does not forward Unix sockets: have the host run OpenSSH's sshd", version)
	}
	return ""
}

// A Forward is one socket on the server's host whose connections come to us.
//
// The socket's file stays when the Forward ends: sshd does not remove it, and
// refuses the next forward of the path while it is there, unless its configuration has
// StreamLocalBindUnlink yes.
type Forward struct {
	forwarder *forwarder
	path      string
	serve     func(ctx context.Context, conn *Conn)
	ctx       context.Context // given to serve
	cancel    context.CancelCauseFunc
	served    chan struct{} // closed when isShut is set and no serve call runs
	cancelled chan struct{} // closed when the server has answered the cancel

	mu        sync.Mutex
	granted   bool
	isShut    bool
	withdrawn bool // the cancel request has been sent, or needs none
	cancelErr error
	conns     map[*Conn]struct{}
}

func newForward(ctx context.Context, r *forwarder, path string, serve func(context.Context, *Conn)) *Forward {
	f := &Forward{
		forwarder: r,
		path:      path,
		serve:     serve,
		served:    make(chan struct{}),
		cancelled: make(chan struct{}),
		conns:     make(map[*Conn]struct{}),
	}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return f
}

// Close asks the server to stop listening, closes every connection of the
// Forward and returns when every serve call has returned. ctx bounds the wait for the
// server, which has to answer the request and the close of each connection: an
// error says that it refused, or did not answer. The Forward is closed all
// the same; serve calls that are stuck then end with the connection. On a connection that
// has ended there is nothing to ask, and Close returns nil. A second Close waits like the
// first. A serve call must not call it: it would wait for itself.
func (f *Forward) Close(ctx context.Context) error {
	f.shut(net.ErrClosed)
	f.withdraw()
	for _, answer := range []<-chan struct{}{f.served, f.cancelled} {
		select {
		case <-answer:
		case <-ctx.Done():
			return fmt.Errorf("cancel the forward of %q: %w", f.path, context.Cause(ctx))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancelErr
}

// Wait returns when the Forward is closed, or the connection has ended, and
// every serve call has returned.
func (f *Forward) Wait() { <-f.served }

// withdraw sends the cancel request, once, without waiting for the answer. The
// path cannot be forwarded again until the answer has come.
func (f *Forward) withdraw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.withdrawn {
		return
	}
	f.withdrawn = true
	if !f.forwarder.spawn(f.sendCancel) {
		close(f.cancelled)
	}
}

func (f *Forward) sendCancel() {
	defer close(f.cancelled)
	ok, _, err := f.forwarder.conn.SendRequest(cancelRequest, true, ssh.Marshal(struct{ Path string }{f.path}))
	f.forwarder.remove(f)
	if err == nil && !ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.cancelErr = fmt.Errorf("the server refused to cancel the forward of %q", f.path)
	}
}

// abandon ends a Forward whose caller has stopped waiting for the reply, and does not wait
// either. If it was granted already it is cancelled here, else by request.
func (f *Forward) abandon(cause error) {
	f.shut(cause)
	f.mu.Lock()
	granted := f.granted
	f.mu.Unlock()
	if granted {
		f.withdraw()
	}
}

// grant notes that the server listens. It returns false if nobody wants that any more.
func (f *Forward) grant() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.granted = !f.isShut
	return f.granted
}

// shut ends the local side: no further serve call begins, and the Conns of those that run
// are closed. A second shut is a no-op.
func (f *Forward) shut(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isShut {
		return
	}
	f.isShut = true
	f.cancel(cause)
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.noteServedLocked()
}

func (f *Forward) noteServedLocked() {
	if f.isShut && len(f.conns) == 0 {
		close(f.served)
	}
}

func (f *Forward) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isShut
}

// handle serves one channel. It returns when the server has closed it, too, or the
// connection has ended.
func (f *Forward) handle(newCh ssh.NewChannel) {
	conn, err := f.forwarder.conns.accept(newCh)
	if err != nil {
		return // the connection has ended
	}
	if f.admit(conn) {
		f.serveOne(conn)
	}
	conn.End()
}

func (f *Forward) serveOne(conn *Conn) {
	defer f.forget(conn)
	f.serve(f.ctx, conn)
}

// admit registers conn, or returns false if the Forward has ended meanwhile.
func (f *Forward) admit(conn *Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isShut {
		return false
	}
	f.conns[conn] = struct{}{}
	return true
}

func (f *Forward) forget(conn *Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
	f.noteServedLocked()
}
