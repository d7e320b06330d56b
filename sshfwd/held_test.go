package sshfwd

import (
	"context"
	"net"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/sshfwd/wire"
)

// A server that fills the window of every channel, which nobody reads, is disconnected
// before it has filled the memory.
func TestServerThatSendsWhatNobodyReads(t *testing.T) {
	for name, size := range map[string]int{"long packets": 32 << 10, "packets of one byte": 1} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			const room = 8 << 20
			limit := liveHeap() + room
			logins := make(chan *fakesshd.Conn, 1)
			srv := &fakesshd.Server{Faults: fakesshd.Faults{LoggedIn: func(conn *fakesshd.Conn) { logins <- conn }}}
			user := fakesshd.Start(t, srv)
			raw, err := net.Dial("tcp", srv.Addr())
			require.NoError(t, err)
			conn, chans, reqs, err := ssh.NewClientConn(wire.Guard(raw, limit), srv.Addr(), srv.ClientConfig(user))
			require.NoError(t, err)
			client := newClient(ssh.NewClient(conn, chans, reqs), env.QuietLog())
			defer client.Close()
			path := filepath.Join(env.ShortDir(t), "S")
			_, err = client.ForwardUnix(testContext(t), path, func(ctx context.Context, _ *Conn) { <-ctx.Done() })
			require.NoError(t, err)

			filling := fill(t, <-logins, path, size)
			err = client.Wait()
			filling.Wait()
			require.ErrorIs(t, err, wire.ErrHeldTooMuch)
			var lost *link.LostError
			require.ErrorAs(t, err, &lost)
			require.Contains(t, lost.Hint(), "means harm")
			require.Less(t, liveHeap(), 2*limit+4*room, "it was noticed late")
		})
	}
}

// fill opens channels and fills them with packets of that size, until it fails.
func fill(t *testing.T, conn *fakesshd.Conn, path string, size int) *sync.WaitGroup {
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

// liveHeap is what was in use at the end of the last garbage collection, in bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
