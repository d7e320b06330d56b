package share

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"gpg-bridge/internal/private"
)

const (
	maxConns      = 1024            // concurrent
	maxRequest    = 4096            // bytes of a request's line
	answerTimeout = 5 * time.Second // for the other side to send, or receive, a line
)

// The shortest and the longest pause after an Accept that failed, for want of descriptors.
const (
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = time.Second
)

// accept serves each connection in a goroutine of its own, until the listener is closed.
// Close waits for them.
func (h *Holder) accept(listener net.Listener) {
	for pause := firstAcceptPause; ; {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			pause = firstAcceptPause
			h.receive(conn)
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		select {
		case <-time.After(pause):
		case <-h.over:
			return
		}
		pause = min(2*pause, lastAcceptPause)
	}
}

func (h *Holder) receive(conn net.Conn) {
	if private.CheckPeer(conn) != nil || !h.admit(conn) {
		_ = conn.Close()
		return
	}
	h.serving.Go(func() {
		defer h.forget(conn)
		done := sync.OnceFunc(h.talking.Done)
		defer done()
		h.serve(conn, done)
	})
}

func (h *Holder) admit(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.conns) >= maxConns {
		return false
	}
	h.conns[conn] = struct{}{}
	h.talking.Add(1)
	return true
}

func (h *Holder) forget(conn net.Conn) {
	_ = conn.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, conn)
}

// serve answers one connection, and calls done when it has sent the last status on it. It
// closes a connection whose request it cannot parse; a request of another version is
// answered by a status, which has our version.
func (h *Holder) serve(conn net.Conn, done func()) {
	_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
	line, err := bufio.NewReaderSize(io.LimitReader(conn, maxRequest), maxRequest).ReadBytes('\n')
	if err != nil {
		return
	}
	var r request
	if json.Unmarshal(line, &r) != nil || r.Version < 1 {
		return
	}
	if r.Version != Version {
		r.Request = askStatus // its version explains why nothing else is done
	}
	_ = conn.SetReadDeadline(time.Time{})
	switch r.Request {
	case askPin:
		h.Pin()
	case askStop:
		h.stop(TakenDown)
	case askReplace:
		h.stop(HandedOver)
	case askYield:
		if status, _ := h.status(); !status.State.Settled() {
			h.stop(HandedOver)
		}
	case askLease:
		h.addLease(1)
		defer h.addLease(-1)
		signal(h.leased)
		h.stream(conn, done)
		return
	case askWatch:
		h.stream(conn, done)
		return
	case askStatus:
	default:
		return
	}
	status, _ := h.status()
	_ = send(conn, status)
}

// stream sends the status now and at every change, until the other side closes the
// connection or the Holder is closed.
func (h *Holder) stream(conn net.Conn, done func()) {
	left := make(chan struct{})
	h.serving.Go(func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, conn)
	})
	defer func() {
		_ = conn.Close()
		<-left
	}()
	for {
		status, changed := h.status()
		if send(conn, status) != nil {
			return
		}
		select {
		case <-changed:
			continue
		case <-left: // or Close has set the deadline of reading
		case <-h.over:
		}
		if isClosed(h.over) {
			h.finish(conn, changed, done)
		}
		return
	}
}

// finish sends the last status, if it has changed, and keeps the connection open until
// the lock is free.
func (h *Holder) finish(conn net.Conn, changed <-chan struct{}, done func()) {
	if isClosed(changed) {
		status, _ := h.status()
		_ = send(conn, status)
	}
	done()
	<-h.free
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// send writes one line, in one write.
func send(conn net.Conn, message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	_, err = conn.Write(append(line, '\n'))
	return err
}
