//go:build unix

package remoteside_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/remoteside"
)

// stage is both machines with a script's client and agent at their ends.
type stage struct {
	client, agent *end
	reports       chan remoteside.Report
}

// newStage returns a stage whose agent, if there is one, has greeted and proved
// itself.
func newStage(t *testing.T, withAgent bool) *stage {
	t.Helper()
	dir := env.ShortDir(t)
	agentSocket := filepath.Join(dir, "S.agent")
	s := &stage{reports: make(chan remoteside.Report, 1)}
	agent := &agentside.Agent{Locator: &agentside.Locator{AgentSocket: agentSocket}}
	srv := remoteside.NewServer(remoteside.Config{
		Log:       slog.New(slog.DiscardHandler),
		Observers: []remoteside.Observer{onEnd{ended: func(r remoteside.Report) { s.reports <- r }}},
		Connect: func(ctx context.Context) (remoteside.Agent, error) {
			return agent.Connect(ctx)
		},
	})
	var agents *net.UnixListener
	if withAgent {
		agents = listen(t, agentSocket)
	}
	served, client := connPair(t, filepath.Join(dir, "S.client"))
	s.client = newEnd(client)
	var serving sync.WaitGroup
	serving.Go(func() { srv.ServeConn(t.Context(), served) })
	t.Cleanup(func() {
		_ = client.Close()
		if s.agent != nil {
			_ = s.agent.conn.Close()
		}
		serving.Wait()
	})
	if withAgent {
		s.agent = newEnd(accept(t, agents))
		require.NoError(t, s.agent.prove())
	}
	return s
}

// onEnd is told of sessions that have ended.
type onEnd struct {
	remoteside.NopObserver
	ended func(remoteside.Report)
}

func (o onEnd) Ended(r remoteside.Report) { o.ended(r) }

// prove is what an agent says before a session is anybody's.
func (e *end) prove() error {
	for _, turn := range []func() error{
		func() error { return e.send("OK Pleased to meet you\n") },
		func() error { return e.receive("GETINFO restricted\n") },
		func() error { return e.send("OK\n") },
	} {
		if err := turn(); err != nil {
			return err
		}
	}
	return nil
}

// ended waits for the session's end.
func (s *stage) ended(cause string) error {
	select {
	case report := <-s.reports:
		got := ""
		if report.Cause != nil {
			got = report.Cause.Error()
		}
		if got != cause {
			return fmt.Errorf("it ended with %q", got)
		}
		return nil
	case <-time.After(waitFor):
		return fmt.Errorf("it did not end")
	}
}

func listen(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func accept(t *testing.T, listener *net.UnixListener) *net.UnixConn {
	t.Helper()
	require.NoError(t, listener.SetDeadline(time.Now().Add(waitFor)))
	conn, err := listener.AcceptUnix()
	require.NoError(t, err)
	return conn
}

// connPair returns two ends of one connection.
func connPair(t *testing.T, path string) (a, b *net.UnixConn) {
	t.Helper()
	listener := listen(t, path)
	b, err := net.DialUnix("unix", nil, listener.Addr().(*net.UnixAddr))
	require.NoError(t, err)
	return accept(t, listener), b
}
