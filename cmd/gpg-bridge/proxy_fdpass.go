package main

import (
	"context"
	"net"
	"os"

	"gpg-bridge/internal/pump"
	"gpg-bridge/sshfwd"
)

// pass connects, hands the connection over and ends; ssh waits for that. Not
// everybody who gives a proxy one socket for both ways wants that: libssh and
// socat speak over theirs. So it must be OpenSSH's ssh, or --fdpass must say so.
func (p *proxyRun) pass(ctx context.Context, in, out *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process
		if !pump.Talks(in) {
			cancel() // nobody is there any more
		}
	}()
	conn, err := p.dial(ctx)
	if ctx.Err() != nil {
		return &exitError{exitConnection, nil}
	}
	if err != nil {
		return &exitError{exitConnection, err}
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	if err := pump.Pass(out, tcp); err != nil {
		return &exitError{exitConnection, &sshfwd.DialError{Host: p.host, Port: p.port, Err: err}}
	}
	p.startAttendant(tcp)
	return nil
}
