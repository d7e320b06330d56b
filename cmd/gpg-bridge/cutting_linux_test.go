//go:build linux

package main

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// clientNewKeys is how a client's NEWKEYS begins: 12 bytes, of which 10 are padding (RFC 4253, 6).
var clientNewKeys = []byte{0, 0, 0, 12, 10, 21}

// A cuttingProxy passes connections on to a server, and ends each where the client would send
// more than some bytes after its NEWKEYS.
type cuttingProxy struct {
	to    string
	after int  // bytes
	reset bool // else the connection is closed
}

// cutting starts a cuttingProxy, and returns its port.
func cutting(t *testing.T, p cuttingProxy) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.pass(client.(*net.TCPConn)) })
		}
	})
	return portOf(t, listener)
}

func (p cuttingProxy) pass(client *net.TCPConn) {
	defer client.Close()
	server, err := net.Dial("tcp4", p.to)
	if err != nil {
		return
	}
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(client, server)
	}()
	var sent []byte
	for buf := make([]byte, 32<<10); ; {
		n, err := client.Read(buf)
		sent = append(sent, buf[:n]...)
		_, last, found := bytes.Cut(sent, clientNewKeys)
		if err != nil || found && len(last) > p.after {
			break
		}
		if _, err := server.Write(buf[:n]); err != nil {
			break
		}
	}
	if p.reset {
		_ = client.SetLinger(0)
	}
	_ = client.Close()
	_ = server.Close()
	<-answers
}
