package remoteside

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"gpg-bridge/assuan"
)

// duplex is a connection of two halves, so that one can be closed alone. Its
// pipes work in virtual time.
type duplex struct {
	*io.PipeReader
	*io.PipeWriter
}

func (d duplex) Close() error { return errors.Join(d.PipeReader.Close(), d.PipeWriter.Close()) }

func duplexPair() (client, server duplex) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	return duplex{toClient, fromClient}, duplex{toServer, fromServer}
}

// inSession runs a session with an agent in virtual time. It begins when the
// client has been greeted.
func inSession(t *testing.T, test func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		client, server := duplexPair()
		agent := newFakeAgent()
		s := newSession(server, connectTo(agent), func([]byte) {})
		ended := make(chan error, 1)
		go func() { ended <- s.run(t.Context()) }()
		receive(t, client, testGreeting)
		test(t, client, agent, ended)
		synctest.Wait()
		<-agent.done
		_ = client.Close()
	})
}

// TestPatience: who leaves while the agent works is waited for half a second,
// and then the agent is left, which makes pinentry go away.
func TestPatience(t *testing.T) {
	inSession(t, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		send(t, client, "PKSIGN\n")
		require.Equal(t, "PKSIGN\n", <-agent.heard)
		start := time.Now()
		require.NoError(t, client.Close())
		<-agent.done
		require.Equal(t, 500*time.Millisecond, time.Since(start))
		require.ErrorIs(t, <-ended, errClientGone)
		require.Empty(t, agent.heard)
	})
}

// TestHalfClosedClient: an answer within the patience still arrives, and the
// farewell that the client did not say is said.
func TestHalfClosedClient(t *testing.T) {
	inSession(t, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		send(t, client, "PKSIGN\n")
		require.Equal(t, "PKSIGN\n", <-agent.heard)
		require.NoError(t, client.PipeWriter.Close())
		time.Sleep(400 * time.Millisecond)
		agent.say <- "D x\n"
		receive(t, client, "D x\n")
		agent.say <- "OK\n"
		receive(t, client, "OK\n")
		require.Equal(t, "BYE\n", <-agent.heard)
		agent.say <- "OK closing connection\n"
		close(agent.gone)
		receiveEOF(t, client)
		require.NoError(t, <-ended)
	})
}

// TestClientGoneInReady: the agent is told, and has half a second to leave.
func TestClientGoneInReady(t *testing.T) {
	for name, agentLeaves := range map[string]bool{"agent leaves": true, "agent stays": false} {
		t.Run(name, func(t *testing.T) {
			inSession(t, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
				start := time.Now()
				require.NoError(t, client.Close())
				require.Equal(t, "BYE\n", <-agent.heard)
				agent.say <- "OK closing connection\n"
				if agentLeaves {
					close(agent.gone)
				}
				require.NoError(t, <-ended)
				if agentLeaves {
					require.Zero(t, time.Since(start))
				} else {
					require.Equal(t, patience, time.Since(start))
				}
				require.Empty(t, agent.heard)
			})
		})
	}
}

// TestClientGoneInInquiry: there is nothing to wait for.
func TestClientGoneInInquiry(t *testing.T) {
	inSession(t, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		send(t, client, "PKDECRYPT\n")
		require.Equal(t, "PKDECRYPT\n", <-agent.heard)
		agent.say <- "INQUIRE CIPHERTEXT\n"
		receive(t, client, "INQUIRE CIPHERTEXT\n")
		start := time.Now()
		require.NoError(t, client.Close())
		require.NoError(t, <-ended)
		require.Zero(t, time.Since(start))
		require.Equal(t, "PKDECRYPT\n", agent.written())
	})
}

// TestNoResponseTimeout: a human may be looking at pinentry, or the client
// thinking about its next command.
func TestNoResponseTimeout(t *testing.T) {
	inSession(t, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		time.Sleep(time.Hour)
		send(t, client, "PKSIGN\n")
		time.Sleep(time.Hour)
		agent.say <- "INQUIRE CIPHERTEXT\n"
		receive(t, client, "INQUIRE CIPHERTEXT\n")
		time.Sleep(time.Hour)
		send(t, client, "END\n")
		time.Sleep(time.Hour)
		agent.say <- "OK\n"
		receive(t, client, "OK\n")
		send(t, client, "BYE\n")
		synctest.Wait()
		agent.say <- "OK closing connection\n"
		receive(t, client, "OK closing connection\n")
		close(agent.gone)
		require.NoError(t, <-ended)
		receiveEOF(t, client)
	})
}

// TestAgentLeaves: between two responses in order, within one not.
func TestAgentLeaves(t *testing.T) {
	inSession(t, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		close(agent.gone)
		require.NoError(t, <-ended)
		receiveEOF(t, client)
	})
	inSession(t, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		send(t, client, "PKDECRYPT\n")
		require.Equal(t, "PKDECRYPT\n", <-agent.heard)
		agent.say <- "INQUIRE CIPHERTEXT\n"
		receive(t, client, "INQUIRE CIPHERTEXT\n")
		close(agent.gone)
		require.Equal(t, errAgentGone, <-ended)
		receiveEOF(t, client)
	})
}

// TestNoAgent: a client is greeted, told, and left, whatever it said first.
func TestNoAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, reports := serve(t, t.Context(), Config{
			Connect: func(context.Context) (Agent, error) { return nil, errTest },
		})
		receive(t, client, "OK Pleased to meet you\n")
		send(t, client, "# a comment\nINPUT FD=3\n")
		receive(t, client, assuan.ErrForbidden)
		time.Sleep(time.Hour)
		send(t, client, "RESET\n")
		receive(t, client, assuan.ErrNoAgent)
		receiveEOF(t, client)
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
		agent := newFakeAgent()
		client, reports := serve(t, ctx, Config{Connect: connectTo(agent)})
		receive(t, client, testGreeting)
		send(t, client, "NOP\n")
		require.Equal(t, "NOP\n", <-agent.heard)
		agent.say <- "S x\n" // and nobody reads it
		synctest.Wait()
		cancel(errTest)
		require.Error(t, (<-reports).Cause)
		<-agent.done
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

// TestStuckClientEnds: a client that takes nothing and then says its last byte
// is waited for no longer than any other, though a write to it is under way.
// This is in real time: a bubble's does not pass while one pump waits for a
// mutex that the other holds.
func TestStuckClientEnds(t *testing.T) {
	client, server := duplexPair()
	agent := newFakeAgent()
	s := newSession(server, connectTo(agent), func([]byte) {})
	ended := make(chan error, 1)
	go func() { ended <- s.run(t.Context()) }()
	receive(t, client, testGreeting)
	send(t, client, "NOP\n")
	require.Equal(t, "NOP\n", <-agent.heard)
	agent.say <- "S x\n" // and nobody reads it
	require.Eventually(t, func() bool { return state(s.seen.Load()) == stateSendingToClient }, 10*time.Second, time.Millisecond)
	require.NoError(t, client.PipeWriter.Close())
	select {
	case err := <-ended:
		require.ErrorIs(t, err, errClientGone)
	case <-time.After(10 * time.Second):
		t.Error("it waits for ever")
	}
	<-agent.done
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
		receiveEOF(t, client)
	})
}
