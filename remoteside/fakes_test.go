package remoteside

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordConn is a client that says nothing and records what happens to it.
type recordConn struct {
	bytes.Buffer
	writes, Closes     int
	WriteErr, CloseErr error
}

func (c *recordConn) Read([]byte) (int, error) { return 0, io.EOF }

func (c *recordConn) Write(p []byte) (int, error) {
	c.writes++
	if c.WriteErr != nil {
		return 0, c.WriteErr
	}
	return c.Buffer.Write(p)
}

func (c *recordConn) Close() error {
	c.Closes++
	return c.CloseErr
}

// onEnd is told of sessions that have ended.
type onEnd struct {
	NopObserver
	ended func(Report)
}

func (o onEnd) Ended(r Report) { o.ended(r) }

// connectTo is a ConnectAgent that finds this agent.
func connectTo(a Agent) ConnectAgent {
	return func(context.Context) (Agent, error) { return a, nil }
}

// serve serves one client of a server with this configuration, and returns the
// client's end and what will be known of the session at its end.
func serve(t *testing.T, ctx context.Context, config Config) (net.Conn, <-chan Report) {
	t.Helper()
	client, server := net.Pipe()
	reports := make(chan Report, 1)
	config.Log = slog.New(slog.DiscardHandler)
	config.Observers = append(config.Observers, onEnd{ended: func(r Report) { reports <- r }})
	srv := NewServer(config)
	var served sync.WaitGroup
	served.Go(func() { srv.ServeConn(ctx, server) })
	t.Cleanup(func() {
		_ = client.Close()
		served.Wait()
		require.Empty(t, srv.Sessions())
	})
	return client, reports
}
