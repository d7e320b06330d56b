package remoteside

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/fakeagent"
)

// counted connects by connect, and counts.
func counted(connect ConnectAgent) (ConnectAgent, *atomic.Int32) {
	var count atomic.Int32
	return Lazy(func(ctx context.Context) (Agent, error) {
		count.Add(1)
		return connect(ctx)
	}, true), &count
}

// TestLazyWakesNobody: whoever gives no command that is the agent's is greeted and
// answered without it.
func TestLazyWakesNobody(t *testing.T) {
	for name, c := range map[string]struct{ say, hear string }{
		"nothing":  {},
		"comments": {"# one\n\n# two\r\n", ""},
		"BYE":      {"bye now\n", "OK closing connection\n"},
		"who":      {"GETINFO restricted\ngetinfo\t restricted\r\nBYE\n", "OK\nOK\nOK closing connection\n"},
		"refused":  {"INPUT FD=4\nPRESET_PASSPHRASE x\n", "ERR 67109115 Forbidden <GPG Agent>\nERR 67109115 Forbidden <GPG Agent>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			connect, count := counted((&okAgents{}).connect)
			client, reports := serve(t, t.Context(), Config{Connect: connect})
			fakeagent.Receive(t, client, fakeagent.Greeting)
			fakeagent.Send(t, client, c.say)
			fakeagent.Receive(t, client, c.hear)
			require.NoError(t, client.Close())
			report := <-reports
			require.NoError(t, report.Cause)
			require.NoError(t, report.Unreachable)
			require.Zero(t, count.Load())
		})
	}
}

// TestLazyConnectsOnce, at the first command, and the conversation is then the
// agent's.
func TestLazyConnectsOnce(t *testing.T) {
	connect, count := counted((&okAgents{}).connect)
	client, reports := serve(t, t.Context(), Config{Connect: connect})
	require.NoError(t, converse(client, 3))
	require.NoError(t, (<-reports).Cause)
	require.EqualValues(t, 1, count.Load())
}

// TestLazyWithoutAnAgent: the command is answered, and the session ends.
func TestLazyWithoutAnAgent(t *testing.T) {
	client, reports := serve(t, t.Context(), Config{Connect: Lazy(func(context.Context) (Agent, error) { return nil, errTest }, true)})
	fakeagent.Receive(t, client, fakeagent.Greeting)
	fakeagent.Send(t, client, "RESET\n")
	fakeagent.Receive(t, client, "ERR 67108941 No agent running <GPG Agent>\n")
	fakeagent.ReceiveEOF(t, client)
	report := <-reports
	require.NoError(t, report.Cause)
	require.Equal(t, errTest, report.Unreachable)
}

// TestLazyIsLeft: a client that leaves while the agent is connected to ends that,
// and an agent that comes all the same is closed.
func TestLazyIsLeft(t *testing.T) {
	agent := fakeagent.New()
	connecting := make(chan struct{})
	client, reports := serve(t, t.Context(), Config{Connect: Lazy(func(ctx context.Context) (Agent, error) {
		close(connecting)
		<-ctx.Done()
		return agent, nil
	}, true)})
	fakeagent.Receive(t, client, fakeagent.Greeting)
	fakeagent.Send(t, client, "RESET\n")
	<-connecting
	require.NoError(t, client.Close())
	require.ErrorIs(t, (<-reports).Cause, errClientGone)
	<-agent.Done
	require.Empty(t, agent.Written())
}

// TestLazyAnswersOnlyWhatIsTrue: where conversations may not be restricted, and for what
// only resembles the question, the agent is asked.
func TestLazyAnswersOnlyWhatIsTrue(t *testing.T) {
	for _, c := range []struct {
		restricted bool
		say        string
	}{{false, "GETINFO restricted\n"}, {true, "GETINFO restricted \n"}, {true, "GETINFO pid\n"}, {true, "GETINFO\n"}, {true, "GETINFOS restricted\n"}} {
		asked := false
		client, reports := serve(t, t.Context(), Config{Connect: Lazy(func(context.Context) (Agent, error) {
			asked = true
			return nil, errTest
		}, c.restricted)})
		fakeagent.Receive(t, client, fakeagent.Greeting)
		fakeagent.Send(t, client, c.say)
		fakeagent.Receive(t, client, "ERR 67108941 No agent running <GPG Agent>\n")
		<-reports
		require.True(t, asked, c.say)
	}
}

// TestLazyIsAskedFirst: what comes after the question is the agent's to answer.
func TestLazyIsAskedFirst(t *testing.T) {
	connect, count := counted((&okAgents{}).connect)
	client, reports := serve(t, t.Context(), Config{Connect: connect})
	fakeagent.Receive(t, client, fakeagent.Greeting)
	fakeagent.Send(t, client, "GETINFO restricted\n")
	fakeagent.Receive(t, client, "OK\n")
	require.Zero(t, count.Load())
	fakeagent.Send(t, client, "GETINFO restricted\nNOP\nGETINFO restricted\nBYE\n")
	fakeagent.Receive(t, client, "OK\nOK\nOK\nOK\n")
	require.NoError(t, (<-reports).Cause)
	require.EqualValues(t, 1, count.Load())
}

// TestLazyLines: one command may wait for the agent; what is written after the end
// goes nowhere.
func TestLazyLines(t *testing.T) {
	connect, _ := counted((&okAgents{}).connect)
	agent, err := connect(t.Context())
	require.NoError(t, err)
	require.NoError(t, agent.WriteLine([]byte("NOP\n")))
	require.ErrorIs(t, agent.WriteLine([]byte("NOP\n")), errOneAtATime)
	require.NoError(t, agent.Close())
	require.NoError(t, agent.Close())
	require.Error(t, agent.WriteLine([]byte("NOP\n")))
	_, _, err = agent.ReadLine()
	require.ErrorIs(t, err, io.EOF)
}

// TestLazyAgentThatTakesNothing: the first answer is the agent's, and an agent that
// takes no command is one that has gone.
func TestLazyAgentThatTakesNothing(t *testing.T) {
	for writeErr, want := range map[error]error{nil: nil, io.EOF: errAgentGone, errTest: errTest} {
		agent := fakeagent.New()
		agent.WriteErr = writeErr
		lazy, err := Lazy(connectTo(agent), true)(t.Context())
		require.NoError(t, err)
		require.NoError(t, lazy.WriteLine([]byte("NOP\n")))
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if writeErr == nil {
				agent.Say <- "OK\n"
			}
		}()
		line, _, err := lazy.ReadLine()
		require.Equal(t, want, err)
		require.Equal(t, want == nil, string(line) == "OK\n")
		<-answered
		require.NoError(t, lazy.Close())
	}
}
