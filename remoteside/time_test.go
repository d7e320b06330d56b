package remoteside

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
)

// inSession runs a session with an agent in virtual time. It begins when the
// client has been greeted.
func inSession(t *testing.T, test func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		client, server := fakeagent.Pair()
		agent := fakeagent.New()
		s := newSession(server, Config{Connect: connectTo(agent)}, func([]byte) {})
		ended := make(chan error, 1)
		go func() { ended <- s.run(t.Context()).Cause }()
		fakeagent.Receive(t, client, fakeagent.Greeting)
		test(t, client, agent, ended)
		synctest.Wait()
		<-agent.Done
		_ = client.Close()
	})
}

// TestPatience: who leaves while the agent works is waited for half a second,
// and then the agent is left, which makes pinentry go away.
func TestPatience(t *testing.T) {
	inSession(t, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		fakeagent.Send(t, client, "PKSIGN\n")
		require.Equal(t, "PKSIGN\n", <-agent.Heard)
		start := time.Now()
		require.NoError(t, client.Close())
		<-agent.Done
		require.Equal(t, 500*time.Millisecond, time.Since(start))
		require.ErrorIs(t, <-ended, errClientGone)
		require.Empty(t, agent.Heard)
	})
}

// TestHalfClosedClient: an answer within the patience still arrives, and the
// farewell that the client did not say is said.
func TestHalfClosedClient(t *testing.T) {
	inSession(t, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		fakeagent.Send(t, client, "PKSIGN\n")
		require.Equal(t, "PKSIGN\n", <-agent.Heard)
		require.NoError(t, client.PipeWriter.Close())
		time.Sleep(400 * time.Millisecond)
		agent.Say <- "D x\n"
		fakeagent.Receive(t, client, "D x\n")
		agent.Say <- "OK\n"
		fakeagent.Receive(t, client, "OK\n")
		require.Equal(t, "BYE\n", <-agent.Heard)
		agent.Say <- "OK closing connection\n"
		close(agent.Gone)
		fakeagent.ReceiveEOF(t, client)
		require.NoError(t, <-ended)
	})
}

// TestClientGoneInReady: the agent is told, and has half a second to leave.
func TestClientGoneInReady(t *testing.T) {
	for name, agentLeaves := range map[string]bool{"agent leaves": true, "agent stays": false} {
		t.Run(name, func(t *testing.T) {
			inSession(t, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
				start := time.Now()
				require.NoError(t, client.Close())
				require.Equal(t, "BYE\n", <-agent.Heard)
				agent.Say <- "OK closing connection\n"
				if agentLeaves {
					close(agent.Gone)
				}
				require.NoError(t, <-ended)
				if agentLeaves {
					require.Zero(t, time.Since(start))
				} else {
					require.Equal(t, lingerTime, time.Since(start))
				}
				require.Empty(t, agent.Heard)
			})
		})
	}
}

// TestClientGoneInInquiry: there is nothing to wait for.
func TestClientGoneInInquiry(t *testing.T) {
	inSession(t, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		fakeagent.Send(t, client, "PKDECRYPT\n")
		require.Equal(t, "PKDECRYPT\n", <-agent.Heard)
		agent.Say <- "INQUIRE CIPHERTEXT\n"
		fakeagent.Receive(t, client, "INQUIRE CIPHERTEXT\n")
		start := time.Now()
		require.NoError(t, client.Close())
		require.NoError(t, <-ended)
		require.Zero(t, time.Since(start))
		require.Equal(t, "PKDECRYPT\n", agent.Written())
	})
}

// TestNoResponseTimeout: a human may be looking at pinentry, or the client
// thinking about its next command.
func TestNoResponseTimeout(t *testing.T) {
	inSession(t, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		time.Sleep(time.Hour)
		fakeagent.Send(t, client, "PKSIGN\n")
		time.Sleep(time.Hour)
		agent.Say <- "INQUIRE CIPHERTEXT\n"
		fakeagent.Receive(t, client, "INQUIRE CIPHERTEXT\n")
		time.Sleep(time.Hour)
		fakeagent.Send(t, client, "END\n")
		time.Sleep(time.Hour)
		agent.Say <- "OK\n"
		fakeagent.Receive(t, client, "OK\n")
		fakeagent.Send(t, client, "BYE\n")
		synctest.Wait()
		agent.Say <- "OK closing connection\n"
		fakeagent.Receive(t, client, "OK closing connection\n")
		close(agent.Gone)
		require.NoError(t, <-ended)
		fakeagent.ReceiveEOF(t, client)
	})
}

// TestAgentLeaves: between two responses in order, within one not.
func TestAgentLeaves(t *testing.T) {
	inSession(t, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		close(agent.Gone)
		require.NoError(t, <-ended)
		fakeagent.ReceiveEOF(t, client)
	})
	inSession(t, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		fakeagent.Send(t, client, "PKDECRYPT\n")
		require.Equal(t, "PKDECRYPT\n", <-agent.Heard)
		agent.Say <- "INQUIRE CIPHERTEXT\n"
		fakeagent.Receive(t, client, "INQUIRE CIPHERTEXT\n")
		close(agent.Gone)
		require.Equal(t, errAgentGone, <-ended)
		fakeagent.ReceiveEOF(t, client)
	})
}

// TestNoAgent: a client is greeted, told, and left, whatever it said first.
func TestNoAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, reports := serve(t, t.Context(), Config{
			Connect: func(context.Context) (Agent, error) { return nil, errTest },
		})
		fakeagent.Receive(t, client, "OK Pleased to meet you\n")
		fakeagent.Send(t, client, "# a comment\nINPUT FD=3\n")
		fakeagent.Receive(t, client, assuan.ErrForbidden)
		time.Sleep(time.Hour)
		fakeagent.Send(t, client, "RESET\n")
		fakeagent.Receive(t, client, assuan.ErrNoAgent)
		fakeagent.ReceiveEOF(t, client)
		report := <-reports
		require.Equal(t, errTest, report.Unreachable)
		require.NoError(t, report.Cause)
		require.EqualValues(t, 2, report.Commands)
	})
}

// TestStuckClient: a client that does not read stops its own session only
// until the context ends.
func TestStuckClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		agent := fakeagent.New()
		client, reports := serve(t, ctx, Config{Connect: connectTo(agent)})
		fakeagent.Receive(t, client, fakeagent.Greeting)
		fakeagent.Send(t, client, "NOP\n")
		require.Equal(t, "NOP\n", <-agent.Heard)
		agent.Say <- "S x\n" // and nobody reads it
		synctest.Wait()
		cancel(errTest)
		require.Error(t, (<-reports).Cause)
		<-agent.Done
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

// TestStuckClientEnds: a client that takes nothing and then says its last byte
// is waited for no longer than any other, though a write to it is under way.
// This is in real time: a bubble's does not pass while one pump waits for a
// mutex that the other holds.
func TestStuckClientEnds(t *testing.T) {
	client, server := fakeagent.Pair()
	agent := fakeagent.New()
	s := newSession(server, Config{Connect: connectTo(agent)}, func([]byte) {})
	ended := make(chan error, 1)
	go func() { ended <- s.run(t.Context()).Cause }()
	fakeagent.Receive(t, client, fakeagent.Greeting)
	fakeagent.Send(t, client, "NOP\n")
	require.Equal(t, "NOP\n", <-agent.Heard)
	agent.Say <- "S x\n" // and nobody reads it
	require.Eventually(t, func() bool { return state(s.seen.Load()) == stateSendingToClient }, 10*time.Second, time.Millisecond)
	require.NoError(t, client.PipeWriter.Close())
	select {
	case err := <-ended:
		require.ErrorIs(t, err, errClientGone)
	case <-time.After(10 * time.Second):
		t.Error("it waits for ever")
	}
	<-agent.Done
	_ = client.Close()
}

// TestConnectCancelled: a session that ends while it connects has not found
// the agent unreachable.
func TestConnectCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		client, reports := serve(t, ctx, Config{Connect: func(ctx context.Context) (Agent, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}})
		synctest.Wait()
		cancel(errTest)
		report := <-reports
		require.Equal(t, errTest, report.Cause)
		require.NoError(t, report.Unreachable)
		fakeagent.ReceiveEOF(t, client)
	})
}
