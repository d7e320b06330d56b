//go:build unix

package bridge

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cable carries TCP connections to a server, and can be damaged.
type cable struct {
	listener net.Listener
	server   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	dead  bool
	delay time.Duration // each way
	conns []net.Conn
}

func newCable(t testing.TB, server string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{listener: listener, server: server}
	c.wg.Go(c.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		c.cut()
		c.wg.Wait()
	})
	return c
}

func (c *cable) addr() string { return c.listener.Addr().String() }

func (c *cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp4", c.server)
		if err != nil {
			_ = near.Close()
			continue
		}
		c.mu.Lock()
		c.conns = append(c.conns, near, far)
		c.mu.Unlock()
		c.wg.Go(func() { c.carry(near, far) })
		c.wg.Go(func() { c.carry(far, near) })
	}
}

// die drops everything from now on, and closes nothing.
func (c *cable) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
}

// cut ends all connections.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// slow delays what is sent from now on.
func (c *cable) slow(oneWay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = oneWay
}

func (c *cable) state() (dead bool, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead, c.delay
}

type packet struct {
	data []byte
	due  time.Time
}

// carry copies one way. It reads, and deliver writes what was read after the delay.
func (c *cable) carry(from, to net.Conn) {
	wire := make(chan packet, 1<<12)
	var delivering sync.WaitGroup
	delivering.Go(func() { deliver(to, wire) })
	defer delivering.Wait()
	defer close(wire)
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		if dead, delay := c.state(); !dead {
			wire <- packet{data[:n], time.Now().Add(delay)}
		}
	}
}

func deliver(to net.Conn, wire <-chan packet) {
	for p := range wire {
		time.Sleep(time.Until(p.due))
		_, _ = to.Write(p.data) // if it fails, so does the reader of the other way
	}
	_ = to.Close()
}
