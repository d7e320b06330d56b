package share

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
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
			h.serve(conn)
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
	return true
}

func (h *Holder) forget(conn net.Conn) {
	_ = conn.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, conn)
}

// serve answers one connection. What it cannot parse it hangs up on.
func (h *Holder) serve(conn net.Conn) {
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
		h.stop()
	case askYield:
		if status, _ := h.status(); status.State != Up {
			h.stop()
		}
	case askLease:
		h.addLease(1)
		defer h.addLease(-1)
		h.stream(conn)
		return
	case askWatch:
		h.stream(conn)
		return
	case askStatus:
	default:
		return
	}
	status, _ := h.status()
	_ = send(conn, status)
}

// stream sends the status now and at every change, until the other side leaves.
func (h *Holder) stream(conn net.Conn) {
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
		case <-left:
			return
		}
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
