package sshfwd

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/sshtest"
	"gpg-bridge/internal/testenv"
)

// A server that fills the window of every channel, which nobody reads, is given
// up before it has filled the memory.
func TestServerThatSendsWhatNobodyReads(t *testing.T) {
	for name, size := range map[string]int{"long packets": 32 << 10, "packets of one byte": 1} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			const room = 8 << 20
			limit := heapLive() + room
			logins := make(chan *sshtest.Conn, 1)
			srv := &sshtest.Server{Faults: sshtest.Faults{LoggedIn: func(conn *sshtest.Conn) { logins <- conn }}}
			user := sshtest.Start(t, srv)
			raw, err := net.Dial("tcp", srv.Addr())
			require.NoError(t, err)
			conn, chans, reqs, err := ssh.NewClientConn(newHeldGuard(raw, limit), srv.Addr(), srv.ClientConfig(user))
			require.NoError(t, err)
			client := newClient(ssh.NewClient(conn, chans, reqs), quietLog())
			defer client.Close()
			path := filepath.Join(testenv.ShortDir(t), "S")
			_, err = client.Forward(testContext(t), path, func(ctx context.Context, _ Conn) { <-ctx.Done() })
			require.NoError(t, err)

			filling := fill(t, <-logins, path, size)
			err = client.Wait()
			filling.Wait()
			require.ErrorIs(t, err, ErrHeldTooMuch)
			var lost *LostError
			require.ErrorAs(t, err, &lost)
			require.Contains(t, lost.Hint(), "means harm")
			require.Less(t, heapLive(), 2*limit+4*room, "it was noticed late")
		})
	}
}

// fill opens channels until it fails, and fills them with packets of a size.
func fill(t *testing.T, conn *sshtest.Conn, path string, size int) *sync.WaitGroup {
	t.Helper()
	var filling sync.WaitGroup
	data := make([]byte, size)
	for range 32 {
		filling.Go(func() {
			ch, err := conn.OpenForwarded(path)
			for err == nil {
				_, err = ch.Write(data)
			}
		})
	}
	return &filling
}

// Data that is read may be without end.
func TestGuardLetsReadDataPass(t *testing.T) {
	inner, outer := net.Pipe()
	defer outer.Close()
	g := newHeldGuard(inner, heapLive()+64<<20)
	go func() {
		data := make([]byte, 1<<20)
		for range 16 {
			_, _ = outer.Write(data)
		}
		_ = outer.Close()
	}()
	total, buf := 0, make([]byte, 64<<10)
	for {
		n, err := g.Read(buf)
		total += n
		if err != nil {
			require.False(t, errors.Is(err, ErrHeldTooMuch))
			break
		}
	}
	require.Equal(t, 16<<20, total)
	require.NoError(t, inner.Close())
}
