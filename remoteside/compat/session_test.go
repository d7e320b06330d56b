package compat

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakeagent"
	"gpg-bridge/remoteside"
)

// inSession runs a session with a repair between it and its agent, in virtual time. It
// begins when the client has been greeted.
func inSession(t *testing.T, keys Keygrips, test func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		client, server := fakeagent.Pair()
		agent := fakeagent.New()
		ended := make(chan error, 1)
		srv := remoteside.NewServer(remoteside.Config{
			Connect:   func(ctx context.Context) (remoteside.Agent, error) { return New(ctx, agent, keys), nil },
			Log:       env.QuietLog(),
			Observers: []remoteside.Observer{onEnd{ended: ended}},
		})
		go srv.ServeConn(t.Context(), server)
		fakeagent.Receive(t, client, fakeagent.Greeting)
		test(t, client, agent, ended)
		synctest.Wait()
		<-agent.Done
		_ = client.Close()
	})
}

// onEnd tells how a session has ended.
type onEnd struct {
	remoteside.NopObserver
	ended chan<- error
}

func (o onEnd) Ended(r remoteside.Report) { o.ended <- r.Cause }

func twoKeys(context.Context) ([]string, error) { return []string{gripA, gripB}, nil }

// bothRefused plays KEYINFO and HAVEKEY --list to the end, as an old agent.
func bothRefused(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent) {
	t.Helper()
	fakeagent.Send(t, client, "HAVEKEY --list=1000\n")
	require.Equal(t, "HAVEKEY --list=1000\n", <-agent.Heard)
	agent.Say <- errParameter
	require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.Heard)
	agent.Say <- "OK\n"
	require.Equal(t, "HAVEKEY "+gripB+"\n", <-agent.Heard)
	agent.Say <- errNoSecretKey
	fakeagent.Receive(t, client, list1)

	fakeagent.Send(t, client, "KEYINFO "+gripA+"\n")
	require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.Heard)
	agent.Say <- assuan.ErrForbidden
	require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.Heard)
	agent.Say <- "OK\n"
	fakeagent.Receive(t, client, foundA)
}

// TestPipelined: whatever the client sends behind waits until the answer
// is complete, ours as well as the agent's; and an orderly end is one.
func TestPipelined(t *testing.T) {
	inSession(t, twoKeys, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		bothRefused(t, client, agent)
		fakeagent.Send(t, client, "KEYINFO "+gripB+"\nRESET\nKEYINFO "+gripA+"\nBYE\n")
		synctest.Wait()
		require.Equal(t, "KEYINFO "+gripB+"\n", <-agent.Heard)
		require.Empty(t, agent.Heard, "one command at a time")
		agent.Say <- assuan.ErrForbidden
		synctest.Wait()
		require.Equal(t, "HAVEKEY "+gripB+"\n", <-agent.Heard)
		require.Empty(t, agent.Heard, "one command at a time")
		go func() { agent.Say <- errNoSecretKey }()
		fakeagent.Receive(t, client, errNotFound)
		require.Equal(t, "RESET\n", <-agent.Heard)
		agent.Say <- "OK\n"
		fakeagent.Receive(t, client, "OK\n")
		require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.Heard)
		agent.Say <- assuan.ErrForbidden
		require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.Heard)
		agent.Say <- "OK\n"
		fakeagent.Receive(t, client, foundA)
		require.Equal(t, "BYE\n", <-agent.Heard)
		agent.Say <- "OK closing connection\n"
		fakeagent.Receive(t, client, "OK closing connection\n")
		close(agent.Gone)
		require.NoError(t, <-ended)
	})
}

// TestInquiry: an inquiry's answer passes, before and after a repair.
func TestInquiry(t *testing.T) {
	inSession(t, twoKeys, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		bothRefused(t, client, agent)
		fakeagent.Send(t, client, "PKDECRYPT\n")
		require.Equal(t, "PKDECRYPT\n", <-agent.Heard)
		agent.Say <- "INQUIRE CIPHERTEXT\n"
		fakeagent.Receive(t, client, "INQUIRE CIPHERTEXT\n")
		fakeagent.Send(t, client, "D x\nKEYINFO "+gripA+"\n") // a command in an inquiry: the guard cancels
		require.Equal(t, "D x\n", <-agent.Heard)
		require.Equal(t, "CAN\n", <-agent.Heard)
		agent.Say <- "ERR 67109141 IPC call has been cancelled <GPG Agent>\n"
		fakeagent.Receive(t, client, assuan.ErrUnexpected)
		bothRefused(t, client, agent)
		require.NoError(t, client.Close())
		require.Equal(t, "BYE\n", <-agent.Heard)
		close(agent.Gone)
		require.NoError(t, <-ended)
	})
}

// TestClientLeaves in the middle of a repair: as in the middle of any
// command, the agent has half a second, and is left.
func TestClientLeaves(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent){
		"keyinfo sent": func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent) {
			fakeagent.Send(t, client, "KEYINFO "+gripA+"\n")
			require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.Heard)
		},
		"seeking the key": func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent) {
			fakeagent.Send(t, client, "KEYINFO "+gripA+"\n")
			require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.Heard)
			agent.Say <- assuan.ErrForbidden
			require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.Heard)
		},
		"seeking grips": func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent) {
			fakeagent.Send(t, client, "HAVEKEY --list\n")
			require.Equal(t, "HAVEKEY --list\n", <-agent.Heard)
			agent.Say <- errParameter
			require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.Heard)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSession(t, twoKeys, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
				begin(t, client, agent)
				start := time.Now()
				require.NoError(t, client.Close())
				require.EqualError(t, <-ended, "the client left before the agent had answered")
				require.Equal(t, 500*time.Millisecond, time.Since(start))
				require.Empty(t, agent.Heard, "not a word more")
			})
		})
	}
}

// TestGatheringIsCancelled: the local side's gpg is not waited for by who
// has left.
func TestGatheringIsCancelled(t *testing.T) {
	hangs := func(ctx context.Context) ([]string, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	inSession(t, hangs, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		fakeagent.Send(t, client, "HAVEKEY --list=1000\n")
		require.Equal(t, "HAVEKEY --list=1000\n", <-agent.Heard)
		agent.Say <- errParameter
		start := time.Now()
		require.NoError(t, client.Close())
		require.EqualError(t, <-ended, "the client left before the agent had answered")
		require.Equal(t, 500*time.Millisecond, time.Since(start))
		require.Empty(t, agent.Heard)
	})
}

// TestAgentLeaves in the middle of a repair, or says what it may not.
func TestAgentLeaves(t *testing.T) {
	seeking := func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent) {
		fakeagent.Send(t, client, "KEYINFO "+gripA+"\n")
		require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.Heard)
		agent.Say <- assuan.ErrForbidden
		require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.Heard)
	}
	inSession(t, twoKeys, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		seeking(t, client, agent)
		close(agent.Gone)
		<-ended
		fakeagent.ReceiveEOF(t, client)
	})
	inSession(t, twoKeys, func(t *testing.T, client fakeagent.Duplex, agent *fakeagent.Agent, ended <-chan error) {
		seeking(t, client, agent)
		agent.Say <- "INQUIRE WHAT\n"
		var violation *remoteside.ViolationError
		require.ErrorAs(t, <-ended, &violation)
		require.Equal(t, &remoteside.ViolationError{State: "SeekingKey", Event: "AgentInquire"}, violation)
		fakeagent.ReceiveEOF(t, client)
	})
}

// TestCloseWakes: Close ends a ReadLine wherever it is.
func TestCloseWakes(t *testing.T) {
	for name, gathering := range map[string]bool{"the agent is silent": false, "the keys are being named": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := fakeagent.New()
				c := New(t.Context(), agent, func(ctx context.Context) ([]string, error) {
					<-ctx.Done()
					return nil, errors.New("cancelled")
				})
				require.NoError(t, c.WriteLine([]byte("HAVEKEY --list\n")))
				read := make(chan error, 1)
				go func() {
					_, _, err := c.ReadLine()
					read <- err
				}()
				if gathering {
					agent.Say <- errParameter
				}
				synctest.Wait()
				require.NoError(t, c.Close())
				require.ErrorIs(t, <-read, net.ErrClosed)
				require.ErrorIs(t, c.WriteLine([]byte("NOP\n")), net.ErrClosed)
			})
		})
	}
}
