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

// errConnectionEnded is the cause of what ends with the SSH connection.
var errConnectionEnded = errors.New("the ssh connection has ended")

// A ForwardRefusedError says that the server refused to listen at Path. The
// protocol has no reason to give (RFC 4254 section 4): the caller, who can look
// at the host, fills in Advice, unless the kind of server says it all.
type ForwardRefusedError struct {
	Path string
	// Advice is what the caller found out, and what Hint returns: one line.
	Advice string
}

func (e *ForwardRefusedError) Error() string {
	return fmt.Sprintf("the server refused to listen on the socket %q", e.Path)
}

// Hint says what to do: Advice, or the reasons that sshd has.
func (e *ForwardRefusedError) Hint() string {
	if e.Advice != "" {
		return e.Advice
	}
	return "remove the file if it exists, make its directory, or set AllowStreamLocalForwarding yes in the server's sshd_config"
}

// adviceFor is what the server's version (RFC 4253, 4.2) says of a refusal, ""
// for nothing.
func adviceFor(version string) string {
	if strings.HasPrefix(version, "SSH-2.0-dropbear") {
		return fmt.Sprintf("the host's SSH server is dropbear (%q), which does not forward Unix sockets: have the host run OpenSSH's sshd", version)
	}
	return ""
}

// A RemotePathError says that Path is none on the server's host: sshd would take
// a relative one for one in its own working directory.
type RemotePathError struct{ Path string }

func (e *RemotePathError) Error() string {
	return fmt.Sprintf("forward %q: not an absolute path", e.Path)
}

// Hint says what to do.
func (e *RemotePathError) Hint() string {
	return "give a path that begins with /; ~ and variables are not expanded"
}

// A Forward is one socket on the server's host whose connections come to us.
//
// The socket's file stays when the Forward ends: sshd does not remove it, and
// refuses the next forward of the path while it is there, unless it was told
// StreamLocalBindUnlink yes.
type Forward struct {
	forwarder *Forwarder
	path      string
	serve     func(ctx context.Context, conn Conn)
	ctx       context.Context // given to serve
	cancel    context.CancelCauseFunc
	served    chan struct{} // closed when it is shut and no serve call runs
	cancelled chan struct{} // closed when the server has answered the cancel

	mu        sync.Mutex
	granted   bool
	isShut    bool
	withdrawn bool // the cancel request has been sent, or needs none
	cancelErr error
	conns     map[*channelConn]struct{}
}

func newForward(ctx context.Context, r *Forwarder, path string, serve func(context.Context, Conn)) *Forward {
	f := &Forward{
		forwarder: r,
		path:      path,
		serve:     serve,
		served:    make(chan struct{}),
		cancelled: make(chan struct{}),
		conns:     make(map[*channelConn]struct{}),
	}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return f
}

// Path is the path that was asked for.
func (f *Forward) Path() string { return f.path }

// Close asks the server to stop listening, closes every connection of the
// Forward and returns when every serve call has. ctx bounds the wait for the
// server, which has to answer the request and the close of each connection: an
// error says that an answer was no, or did not come. The Forward is closed all
// the same; serve calls that are stuck then end with the connection, which
// Forwarder.Wait waits for. On a connection that has ended there is nothing to
// ask, and Close returns nil. A second Close waits like the first. A serve call
// must not make it: it would wait for itself.
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
// path stays taken until the answer is there.
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

// abandon ends a Forward whose maker has stopped waiting for the reply, and
// does not wait either. A grant that has come already is withdrawn here, a
// later one by request.
func (f *Forward) abandon(cause error) {
	f.shut(cause)
	f.mu.Lock()
	granted := f.granted
	f.mu.Unlock()
	if granted {
		f.withdraw()
	}
}

// grant notes that the server listens, unless nobody wants it any more.
func (f *Forward) grant() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.granted = !f.isShut
	return f.granted
}

// shut ends what runs locally: no further serve call starts, and the Conns of
// those that run are closed. A second shut is a no-op.
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

// handle serves one channel. It returns when the server, too, has closed it,
// or the connection has ended.
func (f *Forward) handle(newCh ssh.NewChannel) {
	ch, reqs, err := newCh.Accept()
	if err != nil {
		return // the connection has ended
	}
	conn := newChannelConn(ch, reqs)
	if f.admit(conn) {
		f.serveOne(conn)
	}
	_ = conn.Close()
	<-conn.done
}

func (f *Forward) serveOne(conn *channelConn) {
	defer f.forget(conn)
	f.serve(f.ctx, conn)
}

// admit counts conn, or returns false if the Forward has ended meanwhile.
func (f *Forward) admit(conn *channelConn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isShut {
		return false
	}
	f.conns[conn] = struct{}{}
	return true
}

func (f *Forward) forget(conn *channelConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
	f.noteServedLocked()
}
