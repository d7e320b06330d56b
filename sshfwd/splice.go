package sshfwd

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// splice copies between a socket here and a forwarded connection, both ways,
// and passes each half-close on. It returns when both ways have ended, the
// server has closed its end, or ctx has ended; both are closed then. An error
// of one way ends the other: who sends to a peer that is gone shall know it.
func splice(ctx context.Context, sock net.Conn, conn *channelConn) {
	stop := context.AfterFunc(ctx, func() { _ = sock.Close() })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		<-conn.gone                               // the server has closed its end:
		_ = sock.SetReadDeadline(time.Unix(1, 0)) // nobody takes what the socket says
	})
	sent := make(chan struct{})
	wg.Go(func() {
		defer close(sent)
		if _, err := io.Copy(conn, sock); err != nil {
			_ = conn.Close()
			return
		}
		_ = conn.CloseWrite()
	})
	if _, err := io.Copy(sock, conn); err != nil {
		_ = sock.Close()
	} else if half, ok := sock.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	<-sent
	_ = conn.Close()
	_ = sock.Close()
	wg.Wait()
	<-conn.done
}
