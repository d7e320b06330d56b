package proxy

import (
	"context"
	"net"
	"os"

	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/ui"
	"gpg-bridge/sshfwd"
)

// wantsSocket reports whether our parent waits for a socket that it is to be given
// (ProxyUseFdpass). Not everybody who starts a proxy with one socket as its standard input
// and output does: libssh and socat speak over it. So it must also be called ssh.
func wantsSocket(in, out *os.File) bool {
	return proc.IsSocketPair(in, out) && proc.ParentName() == "ssh"
}

// handOver is the proxy that dials the host, gives ssh the socket, and ends, since ssh
// waits for that. An attendant holds the lease of the bridge in its place.
func (p *Proxy) handOver(ctx context.Context, in, out *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process
		if !proc.AwaitInput(in) {
			cancel() // ssh has gone
		}
	}()
	conn, err := p.dial(ctx)
	if ctx.Err() != nil {
		return ui.Exit(ui.ExitConnection, nil)
	}
	if err != nil {
		return ui.Exit(ui.ExitConnection, err)
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	if err := proc.SendFile(out, tcp); err != nil {
		return ui.Exit(ui.ExitConnection, &sshfwd.DialError{Host: p.host, Port: p.port, Err: err})
	}
	p.startAttendant(tcp)
	return nil
}
