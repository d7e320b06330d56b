package mux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/private"
)

const (
	// forwardSocket is the suffix of the socket to which the master connects.
	forwardSocket = ".mux"

	// maxConns is how many connections of a forward are held at once; the
	// others wait in the socket's backlog.
	maxConns = 1024

	// acceptPause follows an accept that failed, most likely for lack of descriptors.
	acceptPause = 50 * time.Millisecond
)

var errForwarded = errors.New("the link has its forward already")

// A Forward is one socket on the host whose connections come to us through the master and a
// socket of our own. The file on the host stays when the Forward ends, as sshd leaves it.
type Forward struct {
	link     *Link
	remote   string
	local    string
	listener *net.UnixListener
	serve    func(context.Context, link.Conn)
	ctx      context.Context // given to serve
	cancel   context.CancelCauseFunc
	slots    chan struct{}
	serving  sync.WaitGroup // accept's goroutine and those of the connections
	served   chan struct{}  // closed when they have ended

	mu    sync.Mutex
	shut  bool
	conns map[*net.UnixConn]struct{}
}

// Forward has the host listen on path, absolute there, and calls serve for each
// connection, in a goroutine of its own. The connection is closed when serve
// returns. The ctx of serve carries ctx's values and ends when the Forward is
// closed; ctx itself bounds the request only. A Link has one Forward at a time.
//
// The error is a *link.RefusedError if the host refused, and a *RefusedError if the
// master's user did.
func (l *Link) Forward(ctx context.Context, path string, serve func(context.Context, link.Conn)) (link.Forward, error) {
	if !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) {
		return nil, &link.PathError{Path: path}
	}
	f, err := l.listen(ctx, path, serve)
	if err != nil {
		return nil, fmt.Errorf("forward %q: %w", path, err)
	}
	if err := f.request(ctx); err != nil {
		f.stop(err)
		f.serving.Wait()
		return nil, err
	}
	return f, nil
}

// listen makes our end of the forward: the master may connect before it has
// answered.
func (l *Link) listen(ctx context.Context, path string, serve func(context.Context, link.Conn)) (*Forward, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.forward != nil {
		return nil, errForwarded
	}
	local, err := l.socket(forwardSocket)
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: local, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(local, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	f := &Forward{
		link: l, remote: path, local: local, listener: listener, serve: serve,
		slots:  make(chan struct{}, maxConns),
		served: make(chan struct{}),
		conns:  make(map[*net.UnixConn]struct{}),
	}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	f.serving.Go(f.accept)
	l.forward = f
	return f, nil
}

// request asks the master to forward. A forward that an earlier process left is cancelled
// first: the master sends the connections of a path to the socket it was told first.
func (f *Forward) request(ctx context.Context) error {
	c, err := f.link.control(ctx)
	if err != nil {
		return fmt.Errorf("forward %q: %w", f.remote, err)
	}
	defer c.close()
	body := streamForward(forwardRemote, f.remote, f.local)
	if err := c.closeOld(ctx, "take back an old forward", body); err != nil {
		return fmt.Errorf("forward %q: %w", f.remote, err)
	}
	var refused *RefusedError
	err = c.forward(ctx, "forward "+f.remote, askOpenForward, body)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		f.takeBack(context.WithoutCancel(ctx))
	case errors.As(err, &refused) && !refused.Denied:
		return &link.RefusedError{Path: f.remote}
	}
	return fmt.Errorf("forward %q: %w", f.remote, err)
}

// takeBack cancels a request that nobody waits for any more. The master passes the
// cancellation on after the request.
func (f *Forward) takeBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tidyTimeout)
	defer cancel()
	_ = f.withdraw(ctx)
}

func (f *Forward) withdraw(ctx context.Context) error {
	c, err := f.link.control(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return c.forward(ctx, "end the forward of "+f.remote, askCloseFwd, streamForward(forwardRemote, f.remote, f.local))
}

// Close has the host stop listening, closes every connection of the Forward and
// returns when every serve call has. ctx bounds the wait; the Forward is closed
// all the same. If the master has ended, Close returns nil. A second Close waits
// like the first.
func (f *Forward) Close(ctx context.Context) error {
	var err error
	if f.isOpen() && !f.link.isOver() {
		err = f.withdraw(ctx) // first, so that nobody connects to a closed socket
	}
	f.stop(net.ErrClosed)
	select {
	case <-f.served:
	case <-ctx.Done():
		return fmt.Errorf("end the forward of %q: %w", f.remote, context.Cause(ctx))
	}
	if err != nil && !f.link.isOver() {
		return fmt.Errorf("end the forward of %q: %w", f.remote, err)
	}
	return nil
}

func (f *Forward) isOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.shut
}

// stop closes our socket and the connections, which ends the serve calls.
func (f *Forward) stop(cause error) {
	f.mu.Lock()
	first := !f.shut
	f.shut = true
	if first {
		f.cancel(cause)
		_ = f.listener.Close() // removes the socket
		for conn := range f.conns {
			_ = conn.Close()
		}
	}
	f.mu.Unlock()
	if !first {
		return
	}
	f.link.mu.Lock()
	if f.link.forward == f {
		f.link.forward = nil
	}
	f.link.mu.Unlock()
	go func() {
		f.serving.Wait()
		close(f.served)
	}()
}

func (f *Forward) accept() {
	for f.takeSlot() {
		conn, err := f.listener.AcceptUnix()
		if err == nil && private.CheckPeer(conn) == nil && f.admit(conn) {
			f.serving.Go(func() {
				defer f.forget(conn)
				f.serve(f.ctx, conn)
			})
			continue
		}
		<-f.slots
		if err == nil {
			_ = conn.Close()
			continue
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(acceptPause):
		}
	}
}

func (f *Forward) takeSlot() bool {
	select {
	case <-f.ctx.Done():
		return false
	case f.slots <- struct{}{}:
		return f.ctx.Err() == nil
	}
}

func (f *Forward) admit(conn *net.UnixConn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return false
	}
	f.conns[conn] = struct{}{}
	return true
}

func (f *Forward) forget(conn *net.UnixConn) {
	_ = conn.Close()
	f.mu.Lock()
	delete(f.conns, conn)
	f.mu.Unlock()
	<-f.slots
}
