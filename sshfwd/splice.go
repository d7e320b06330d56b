package sshfwd

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// Splice copies between a socket here and a forwarded connection, in both directions,
// and passes each half-close on. It returns when both directions have ended, the
// server has closed its end, or ctx has ended; both are closed then. An error in one
// direction ends the other one, too, so that nobody goes on sending to a peer that is
// gone.
func (c *Conn) Splice(ctx context.Context, sock net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = sock.Close() })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		<-c.gone                                  // the server has closed its end, so
		_ = sock.SetReadDeadline(time.Unix(1, 0)) // nobody receives what the socket sends
	})
	sent := make(chan struct{})
	wg.Go(func() {
		defer close(sent)
		if _, err := io.Copy(c, sock); err != nil {
			_ = c.Close()
			return
		}
		_ = c.CloseWrite()
	})
	if _, err := io.Copy(sock, c); err != nil {
		_ = sock.Close()
	} else if half, ok := sock.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	<-sent
	_ = c.Close()
	_ = sock.Close()
	wg.Wait()
	<-c.done
}
