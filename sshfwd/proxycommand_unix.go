//go:build unix

package sshfwd

import (
	"context"
	"time"

	"gpg-bridge/internal/proc"
)

// fdpassExists reports whether a process can hand a socket to another on this system.
const fdpassExists = true

// runProxyDialer runs a command that connects, hands over the socket and ends
// (ssh_proxy_fdpass_connect in sshconnect.c).
func (d *dialer) runProxyDialer(ctx context.Context, command string) (*route, error) {
	ours, theirs, err := proc.SocketPair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	p, err := d.startProxy(command, theirs, theirs)
	_ = theirs.Close()
	if err != nil {
		return nil, err
	}
	defer func() {
		proc.HangUp(p.cmd.Process)
		p.end()
	}()
	_ = ours.SetDeadline(time.Now().Add(d.config.ConnectLimit()))
	stop := context.AfterFunc(ctx, func() { _ = ours.Close() })
	defer stop()
	conn, err := proc.ReceiveConn(ours)
	if err != nil {
		return nil, err
	}
	d.awaitExit(ctx, p)
	return &route{Conn: conn}, nil
}

// awaitExit gives the process time to end by itself.
func (d *dialer) awaitExit(ctx context.Context, p *proxyProcess) {
	timer := time.NewTimer(d.config.ConnectLimit())
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-ctx.Done():
	case <-timer.C:
	}
}
