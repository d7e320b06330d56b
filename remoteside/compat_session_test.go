package remoteside

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
)

// inCompatSession is inSession with the repair between the session and the
// agent.
func inCompatSession(t *testing.T, keys Keygrips, test func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		client, server := duplexPair()
		agent := newFakeAgent()
		connect := func(ctx context.Context) (Agent, error) { return Compat(ctx, agent, keys), nil }
		s := newSession(server, connect, func([]byte) {})
		ended := make(chan error, 1)
		go func() { ended <- s.run(t.Context()) }()
		receive(t, client, testGreeting)
		test(t, client, agent, ended)
		synctest.Wait()
		<-agent.done
		_ = client.Close()
	})
}

func twoKeys(context.Context) ([]string, error) { return []string{gripA, gripB}, nil }

// bothRefused plays KEYINFO and HAVEKEY --list to the end, as an old agent.
func bothRefused(t *testing.T, client duplex, agent *fakeAgent) {
	t.Helper()
	send(t, client, "HAVEKEY --list=1000\n")
	require.Equal(t, "HAVEKEY --list=1000\n", <-agent.heard)
	agent.say <- errParameter
	require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.heard)
	agent.say <- "OK\n"
	require.Equal(t, "HAVEKEY "+gripB+"\n", <-agent.heard)
	agent.say <- errNoSecretKey
	receive(t, client, list1)

	send(t, client, "KEYINFO "+gripA+"\n")
	require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.heard)
	agent.say <- assuan.ErrForbidden
	require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.heard)
	agent.say <- "OK\n"
	receive(t, client, foundA)
}

// TestCompatPipelined: whatever the client sends behind waits until the answer
// is complete, ours as well as the agent's; and an orderly end is one.
func TestCompatPipelined(t *testing.T) {
	inCompatSession(t, twoKeys, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		bothRefused(t, client, agent)
		send(t, client, "KEYINFO "+gripB+"\nRESET\nKEYINFO "+gripA+"\nBYE\n")
		synctest.Wait()
		require.Equal(t, "KEYINFO "+gripB+"\n", <-agent.heard)
		require.Empty(t, agent.heard, "one command at a time")
		agent.say <- assuan.ErrForbidden
		synctest.Wait()
		require.Equal(t, "HAVEKEY "+gripB+"\n", <-agent.heard)
		require.Empty(t, agent.heard, "one command at a time")
		go func() { agent.say <- errNoSecretKey }()
		receive(t, client, errNotFound)
		require.Equal(t, "RESET\n", <-agent.heard)
		agent.say <- "OK\n"
		receive(t, client, "OK\n")
		require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.heard)
		agent.say <- assuan.ErrForbidden
		require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.heard)
		agent.say <- "OK\n"
		receive(t, client, foundA)
		require.Equal(t, "BYE\n", <-agent.heard)
		agent.say <- "OK closing connection\n"
		receive(t, client, "OK closing connection\n")
		close(agent.gone)
		require.NoError(t, <-ended)
	})
}

// TestCompatInquiry: an inquiry's answer passes, before and after a repair.
func TestCompatInquiry(t *testing.T) {
	inCompatSession(t, twoKeys, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		bothRefused(t, client, agent)
		send(t, client, "PKDECRYPT\n")
		require.Equal(t, "PKDECRYPT\n", <-agent.heard)
		agent.say <- "INQUIRE CIPHERTEXT\n"
		receive(t, client, "INQUIRE CIPHERTEXT\n")
		send(t, client, "D x\nKEYINFO "+gripA+"\n") // a command in an inquiry: the guard cancels
		require.Equal(t, "D x\n", <-agent.heard)
		require.Equal(t, "CAN\n", <-agent.heard)
		agent.say <- "ERR 67109141 IPC call has been cancelled <GPG Agent>\n"
		receive(t, client, assuan.ErrUnexpected)
		bothRefused(t, client, agent)
		require.NoError(t, client.Close())
		require.Equal(t, "BYE\n", <-agent.heard)
		close(agent.gone)
		require.NoError(t, <-ended)
	})
}

// TestCompatClientLeaves in the middle of a repair: as in the middle of any
// command, the agent has half a second, and is left.
func TestCompatClientLeaves(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, client duplex, agent *fakeAgent){
		"keyinfo sent": func(t *testing.T, client duplex, agent *fakeAgent) {
			send(t, client, "KEYINFO "+gripA+"\n")
			require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.heard)
		},
		"seeking the key": func(t *testing.T, client duplex, agent *fakeAgent) {
			send(t, client, "KEYINFO "+gripA+"\n")
			require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.heard)
			agent.say <- assuan.ErrForbidden
			require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.heard)
		},
		"seeking grips": func(t *testing.T, client duplex, agent *fakeAgent) {
			send(t, client, "HAVEKEY --list\n")
			require.Equal(t, "HAVEKEY --list\n", <-agent.heard)
			agent.say <- errParameter
			require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.heard)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCompatSession(t, twoKeys, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
				begin(t, client, agent)
				start := time.Now()
				require.NoError(t, client.Close())
				require.ErrorIs(t, <-ended, errClientGone)
				require.Equal(t, patience, time.Since(start))
				require.Empty(t, agent.heard, "not a word more")
			})
		})
	}
}

// TestCompatGatheringIsCancelled: the local side's gpg is not waited for by who
// has left.
func TestCompatGatheringIsCancelled(t *testing.T) {
	hangs := func(ctx context.Context) ([]string, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	inCompatSession(t, hangs, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		send(t, client, "HAVEKEY --list=1000\n")
		require.Equal(t, "HAVEKEY --list=1000\n", <-agent.heard)
		agent.say <- errParameter
		start := time.Now()
		require.NoError(t, client.Close())
		require.ErrorIs(t, <-ended, errClientGone)
		require.Equal(t, patience, time.Since(start))
		require.Empty(t, agent.heard)
	})
}

// TestCompatAgentLeaves in the middle of a repair, or says what it may not.
func TestCompatAgentLeaves(t *testing.T) {
	seeking := func(t *testing.T, client duplex, agent *fakeAgent) {
		send(t, client, "KEYINFO "+gripA+"\n")
		require.Equal(t, "KEYINFO "+gripA+"\n", <-agent.heard)
		agent.say <- assuan.ErrForbidden
		require.Equal(t, "HAVEKEY "+gripA+"\n", <-agent.heard)
	}
	inCompatSession(t, twoKeys, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		seeking(t, client, agent)
		close(agent.gone)
		<-ended
		receiveEOF(t, client)
	})
	inCompatSession(t, twoKeys, func(t *testing.T, client duplex, agent *fakeAgent, ended <-chan error) {
		seeking(t, client, agent)
		agent.say <- "INQUIRE WHAT\n"
		var violation *ViolationError
		require.ErrorAs(t, <-ended, &violation)
		require.Equal(t, &ViolationError{State: "SeekingKey", Event: "AgentInquire"}, violation)
		receiveEOF(t, client)
	})
}

// TestCompatCloseWakes: Close ends a ReadLine wherever it is.
func TestCompatCloseWakes(t *testing.T) {
	for name, gathering := range map[string]bool{"the agent is silent": false, "the keys are being named": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := newFakeAgent()
				c := Compat(t.Context(), agent, func(ctx context.Context) ([]string, error) {
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
					agent.say <- errParameter
				}
				synctest.Wait()
				require.NoError(t, c.Close())
				require.ErrorIs(t, <-read, net.ErrClosed)
				require.ErrorIs(t, c.WriteLine([]byte("NOP\n")), net.ErrClosed)
			})
		})
	}
}
