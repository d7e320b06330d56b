package sshfwd

import (
	"context"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// freshAck is how old an acknowledgement may be that shows that the link is up.
	freshAck = time.Second
	// ackTimeout is how long to wait for one, and probeInterval how long after each
	// probe: a probe may be lost.
	ackTimeout    = 6 * time.Second
	probeInterval = 2 * time.Second
	ackInterval   = 10 * time.Millisecond // between two checks
	// longSilence is the silence after which a link is tried with data after all:
	// TCP then gives it up a quarter of an hour later, by its retransmissions.
	longSilence = 10 * time.Minute
	// maxProbes is the greatest value of TCP_KEEPCNT: more than are sent in
	// longSilence, so that they do not end the connection.
	maxProbes = 127
)

// isUp reports whether the server's kernel still acknowledges TCP's keepalive probes.
// Unlike these, data that is sent while the link is down is retransmitted at growing
// intervals: what the user types when the link is up again would wait for the next
// retransmission, for more than a minute after an outage of two. A link that cannot be
// probed counts as up.
func isUp(ctx context.Context, conn *net.TCPConn) bool {
	p, err := newAckProbe(conn)
	if err != nil {
		return true
	}
	defer p.restore()
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	ticker := time.NewTicker(ackInterval)
	defer ticker.Stop()
	began, next := time.Now(), time.Time{}
	for {
		info, err := p.info()
		silence := time.Duration(info.Last_ack_recv) * time.Millisecond
		if err != nil || silence < freshAck || silence < time.Since(began) || silence > longSilence {
			return true
		}
		if now := time.Now(); now.After(next) && info.Unacked == 0 {
			p.send()
			next = now.Add(probeInterval)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}

// An ackProbe sends keepalive probes at once, and in the end restores the keepalive
// options.
type ackProbe struct {
	control func(func(fd int))
	options [3]int // as they were: SO_KEEPALIVE, TCP_KEEPCNT, TCP_KEEPIDLE
	sent    bool
}

func ackProbeOptions() [3][2]int {
	return [3][2]int{{unix.SOL_SOCKET, unix.SO_KEEPALIVE}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}}
}

func newAckProbe(conn *net.TCPConn) (*ackProbe, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &ackProbe{control: func(f func(fd int)) { _ = raw.Control(func(fd uintptr) { f(int(fd)) }) }}
	err = net.ErrClosed // unless control calls the function
	p.control(func(fd int) {
		for i, option := range ackProbeOptions() {
			if p.options[i], err = unix.GetsockoptInt(fd, option[0], option[1]); err != nil {
				return
			}
		}
	})
	return p, err
}

func (p *ackProbe) info() (info unix.TCPInfo, err error) {
	err = net.ErrClosed
	p.control(func(fd int) {
		var found *unix.TCPInfo
		if found, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			info = *found
		}
	})
	return info, err
}

// send sends a probe if the link has been idle for a second: setting TCP_KEEPIDLE restarts
// that timer (tcp_sock_set_keepidle_locked in Linux's tcp.c).
func (p *ackProbe) send() {
	p.sent = true
	p.set([3]int{1, maxProbes, 1})
}

func (p *ackProbe) restore() {
	if p.sent {
		p.set(p.options)
	}
}

func (p *ackProbe) set(values [3]int) {
	p.control(func(fd int) {
		for i, option := range ackProbeOptions() {
			_ = unix.SetsockoptInt(fd, option[0], option[1], values[i])
		}
	})
}
