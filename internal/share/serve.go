package share

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"sync"
	"time"

	"gpg-bridge/internal/private"
)

const (
	maxConns      = 1024            // at once
	maxRequest    = 4096            // bytes of a request's line
	answerTimeout = 5 * time.Second // for the other side to say, or take, a line
)

// accept serves every connection in a goroutine of its own; Close waits for all.
func (h *Holder) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return // closed
		}
		if private.CheckPeer(conn) != nil || !h.admit(conn) {
			_ = conn.Close()
			continue
		}
		h.serving.Go(func() {
			defer h.forget(conn)
			done := sync.OnceFunc(h.talking.Done)
			defer done()
			h.serve(conn, done)
		})
	}
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

// serve answers one connection, and calls done when it has said the last it will
// say. What it cannot parse it hangs up on.
func (h *Holder) serve(conn net.Conn, done func()) {
	_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
	line, err := bufio.NewReaderSize(io.LimitReader(conn, maxRequest), maxRequest).ReadBytes('\n')
	if err != nil {
		return
	}
	var r request
	if json.Unmarshal(line, &r) != nil || r.Version != Version {
		return
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
		if status, _ := h.status(); status.State != Up {
			h.stop(HandedOver)
		}
	case askLease:
		h.leaseTaken()
		defer h.leaseGone()
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

// stream sends the status now and at every change, until the other side leaves
// or the holding ends.
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
		case <-left: // to which Close leads, too
		case <-h.over:
		}
		if isClosed(h.over) {
			h.part(conn, changed, done)
		}
		return
	}
}

// part sends the last status if it is news, and keeps the connection open until
// the lock is free.
func (h *Holder) part(conn net.Conn, changed <-chan struct{}, done func()) {
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
