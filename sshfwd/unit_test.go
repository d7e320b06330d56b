package sshfwd

import (
	"bytes"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
	"gpg-bridge/sshfwd/login"
)

// lockedBuffer collects what commands print.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// keepaliveClient is a Client in a bubble of virtual time, over an in-memory
// link; until dead is set, the server answers.
func keepaliveClient(t *testing.T, dead *atomic.Bool) *Client {
	t.Helper()
	hostKey, err := fakesshd.NewSigner()
	require.NoError(t, err)
	server := &ssh.ServerConfig{NoClientAuth: true}
	server.AddHostKey(hostKey)
	left, right := newBufferedPipe()
	go func() {
		_, channels, requests, err := ssh.NewServerConn(right, server)
		if err != nil {
			return
		}
		go func() {
			for range channels {
			}
		}()
		for req := range requests {
			if req.WantReply && !dead.Load() {
				_ = req.Reply(false, nil)
			}
		}
	}()
	conn, channels, requests, err := ssh.NewClientConn(left, "x", &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(hostKey.PublicKey())})
	require.NoError(t, err)
	return newClient(ssh.NewClient(conn, channels, requests), env.QuietLog())
}

func TestKeepaliveEndsADeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		client := keepaliveClient(t, &dead)
		client.startKeepalive(15*time.Second, 3, func() uint64 { return 0 })
		time.Sleep(time.Hour)
		dead.Store(true)
		start := time.Now()
		err := client.Wait()
		require.ErrorIs(t, err, ErrNoAnswer)
		var lost *link.LostError
		require.ErrorAs(t, err, &lost)
		require.LessOrEqual(t, time.Since(start), 60*time.Second)
		require.GreaterOrEqual(t, time.Since(start), 45*time.Second)
		_ = client.Close()
	})
}

func TestKeepaliveTakesTrafficForLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		var received atomic.Uint64
		client := keepaliveClient(t, &dead)
		dead.Store(true)
		client.startKeepalive(15*time.Second, 3, func() uint64 { return received.Add(1) })
		time.Sleep(time.Hour)
		require.NoError(t, client.Close()) // and it does not wait for an answer
		require.NoError(t, client.Wait())
	})
}

// It is enough that something arrives now and then.
func TestKeepaliveForgetsMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		var looks atomic.Uint64
		client := keepaliveClient(t, &dead)
		dead.Store(true)
		client.startKeepalive(15*time.Second, 2, func() uint64 { return looks.Add(1) / 2 })
		time.Sleep(time.Hour)
		require.NoError(t, client.Close())
		require.NoError(t, client.Wait())
	})
}

func TestKeepaliveOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		client := keepaliveClient(t, &dead)
		dead.Store(true)
		client.startKeepalive(0, 3, nil)
		time.Sleep(time.Hour)
		require.NoError(t, client.Close())
		client = keepaliveClient(t, &dead)
		client.startKeepalive(time.Second, 0, func() uint64 { return 0 })
		time.Sleep(time.Hour)
		require.NoError(t, client.Close())
	})
}

// newBufferedPipe is net.Pipe with a buffer: both ends of SSH begin by writing.
func newBufferedPipe() (net.Conn, net.Conn) {
	a, b := newHalf(), newHalf()
	return &pipeEnd{in: a, out: b}, &pipeEnd{in: b, out: a}
}

type half struct {
	mu     sync.Mutex
	cond   *sync.Cond
	data   []byte
	closed bool
}

func newHalf() *half {
	h := &half{}
	h.cond = sync.NewCond(&h.mu)
	return h
}

func (h *half) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.cond.Broadcast()
}

type pipeEnd struct {
	net.Conn
	in, out *half
}

func (p *pipeEnd) Read(b []byte) (int, error) {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	for len(p.in.data) == 0 {
		if p.in.closed {
			return 0, net.ErrClosed
		}
		p.in.cond.Wait()
	}
	n := copy(b, p.in.data)
	p.in.data = p.in.data[n:]
	return n, nil
}

func (p *pipeEnd) Write(b []byte) (int, error) {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if p.out.closed {
		return 0, net.ErrClosed
	}
	p.out.data = append(p.out.data, b...)
	p.out.cond.Broadcast()
	return len(b), nil
}

func (p *pipeEnd) Close() error {
	p.in.close()
	p.out.close()
	return nil
}

func (p *pipeEnd) RemoteAddr() net.Addr { return env.TCPAddr(22) }
func (p *pipeEnd) LocalAddr() net.Addr  { return env.TCPAddr(23) }

func TestErrorsHaveHints(t *testing.T) {
	for _, err := range []interface {
		error
		Hint() string
	}{
		&config.Error{Problem: "p", Advice: "a"}, &config.UnsupportedError{Option: "O", Value: "v"}, &DialError{Host: "h", Port: 1, Err: os.ErrDeadlineExceeded},
		&HandshakeError{Host: "h", Port: 1, Err: ErrNoAnswer}, &login.AuthError{User: "u", Host: "h"}, &link.LostError{}, &hostkey.Error{},
	} {
		require.NotEmpty(t, err.Hint())
		require.NotContains(t, err.Error()+err.Hint(), "\n")
	}
	require.Equal(t, "cannot connect to h:1: timed out", (&DialError{Host: "h", Port: 1, Err: os.ErrDeadlineExceeded}).Error())
}
