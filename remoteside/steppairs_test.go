package remoteside

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
)

var errTest = errors.New("test")

// outcome is what is left after an event and all that it caused.
type outcome struct {
	state         state
	client, agent string // what was written to them
	closed        bool   // both of them, once
	cause         error
	violation     bool   // cause is the *ViolationError of the pair
	refusal       string // what waits for the agent's OK or ERR
}

// pairs holds what must come of the listed pairs, but for the columns of close
// and error; see expected.
var pairs = []struct {
	state state
	event event
	line  string
	want  outcome
}{
	{stateDisconnected, evClientSocketConnected, "", outcome{state: stateReady, client: fakeagent.Greeting}},
	{stateConnectingToAgent, evAgentGreetingOK, "", outcome{state: stateReady, client: fakeagent.Greeting}},
	{stateReady, evClientDataStart, "", outcome{state: stateBufferingCommand}},
	{stateBufferingCommand, evClientDataPartial, "", outcome{state: stateBufferingCommand}},
	{stateBufferingCommand, evClientDataComplete, "NOP\n", outcome{state: stateWaitingForAgent, agent: "NOP\n"}},
	{stateBufferingCommand, evClientDataComplete, "input FD=3\n", outcome{state: stateReady, client: assuan.ErrForbidden}},
	{stateBufferingInquire, evClientDataPartial, "D x\n", outcome{state: stateBufferingInquire, agent: "D x\n"}},
	{stateBufferingInquire, evClientDataComplete, "END\n", outcome{state: stateWaitingForAgent, agent: "END\n"}},
	{stateBufferingInquire, evClientDataComplete, "cancel\n", outcome{state: stateWaitingForAgent, agent: "cancel\n"}},
	{stateBufferingInquire, evClientDataComplete, "NOP\n", outcome{state: stateWaitingForAgent, agent: "CAN\n", refusal: assuan.ErrUnexpected}},
	{stateBufferingInquire, evClientDataComplete, "D %\n", outcome{state: stateWaitingForAgent, agent: "CAN\n", refusal: assuan.ErrSyntax}},
	{stateSendingToAgent, evWriteOK, "", outcome{state: stateWaitingForAgent}},
	{stateSendingToAgent, evAgentResponseComplete, assuan.ErrForbidden, outcome{state: stateReady, client: assuan.ErrForbidden}},
	{stateWaitingForAgent, evAgentResponseComplete, "OK\n", outcome{state: stateReady, client: "OK\n"}},
	{stateWaitingForAgent, evAgentResponseComplete, "ERR 1 x\n", outcome{state: stateReady, client: "ERR 1 x\n"}},
	{stateWaitingForAgent, evAgentResponseComplete, "S PROGRESS\n", outcome{state: stateWaitingForAgent, client: "S PROGRESS\n"}},
	{stateWaitingForAgent, evAgentResponseComplete, "D OK\n", outcome{state: stateWaitingForAgent, client: "D OK\n"}},
	{stateWaitingForAgent, evAgentResponseComplete, "# OK\n", outcome{state: stateWaitingForAgent, client: "# OK\n"}},
	{stateWaitingForAgent, evAgentResponseComplete, "INQUIRE X\n", outcome{state: stateBufferingInquire, client: "INQUIRE X\n"}},
	{stateSendingToClient, evResponseOKOrErr, "", outcome{state: stateReady}},
	{stateSendingToClient, evResponseInquire, "", outcome{state: stateBufferingInquire}},
	{stateSendingToClient, evWriteOK, "", outcome{state: stateWaitingForAgent}},
	{stateError, evCleanupRequested, "", outcome{state: stateDisconnected, closed: true}},
	{stateClosing, evCleanupComplete, "", outcome{state: stateDisconnected}},
	{stateClosing, evCleanupError, "", outcome{state: stateFatal}},
}

// expected says what must come of the pairs that pairs does not hold: of an
// error, of a close, and of a violation. A session that is being released
// (Error, Closing) is not released again, nor is one that has ended.
func expected(s state, e event) outcome {
	want := outcome{state: stateDisconnected, closed: true}
	if s.final() || s == stateError || s == stateClosing {
		want = outcome{state: s}
	}
	switch e {
	case evCleanupRequested:
	case evErrorOccurred:
		want.cause = errTest
	default:
		want.violation = true
	}
	return want
}

func TestStepPairs(t *testing.T) {
	for s := range numStates {
		for e := range numEvents {
			rows := 0
			for _, p := range pairs {
				if p.state == s && p.event == e {
					rows++
					t.Run(s.String()+"/"+e.String()+"/"+p.line, func(t *testing.T) { checkPair(t, s, e, p.line, p.want) })
				}
			}
			if rows == 0 {
				t.Run(s.String()+"/"+e.String(), func(t *testing.T) { checkPair(t, s, e, "", expected(s, e)) })
			}
		}
	}
}

func checkPair(t *testing.T, s state, e event, line string, want outcome) {
	ses, client, agent := sessionIn(s)
	if e == evErrorOccurred {
		require.Equal(t, e, ses.fail(errTest))
	}
	ses.step(t.Context(), e, inputOf(line))
	require.Equal(t, want.state.String(), ses.state.String())
	require.Equal(t, uint32(want.state), ses.seen.Load())
	require.Equal(t, want.client, client.String())
	require.Equal(t, want.agent, agent.Written())
	require.Equal(t, want.refusal, ses.refusal)
	closes := 0
	if want.closed {
		closes = 1
	}
	require.Equal(t, closes, client.Closes, "closes of the client")
	require.Equal(t, closes, agent.Closes, "closes of the agent")
	if want.violation {
		require.Equal(t, &ViolationError{State: s.String(), Event: e.String()}, ses.cause)
		require.Contains(t, ses.cause.Error(), e.String())
		return
	}
	require.Equal(t, want.cause, ses.cause)
}

// inputOf is a line that may be anybody's.
func inputOf(text string) input {
	line := []byte(text)
	return input{line: line, command: assuan.ParseCommand(line), answer: assuan.AnswerOf(line)}
}

// sessionIn returns a session in a state, and what records its two sides.
func sessionIn(s state) (*session, *recordConn, *fakeagent.Agent) {
	client, agent := &recordConn{}, fakeagent.New()
	ses := newSession(client, Config{Connect: connectTo(agent)}, func([]byte) {})
	ses.state, ses.agent = s, agent
	ses.seen.Store(uint32(s))
	return ses, client, agent
}

// TestStepFailures: what an action cannot do ends the session, with the reason
// as its cause.
func TestStepFailures(t *testing.T) {
	for name, c := range map[string]struct {
		state               state
		event               event
		line                string
		clientErr, agentErr error
		leaving             clientState
		cause               error
	}{
		"greeting":             {state: stateConnectingToAgent, event: evAgentGreetingOK, clientErr: errTest, cause: errTest},
		"command":              {state: stateBufferingCommand, event: evClientDataComplete, line: "NOP\n", agentErr: errTest, cause: errTest},
		"data":                 {state: stateBufferingInquire, event: evClientDataPartial, line: "D x\n", agentErr: errTest, cause: errTest},
		"answer":               {state: stateBufferingInquire, event: evClientDataComplete, line: "END\n", agentErr: errTest, cause: errTest},
		"refused answer":       {state: stateBufferingInquire, event: evClientDataComplete, line: "NOP\n", agentErr: errTest, cause: errTest},
		"command to nobody":    {state: stateBufferingCommand, event: evClientDataComplete, line: "NOP\n", agentErr: io.EOF, cause: errAgentGone},
		"silent BYE to nobody": {state: stateBufferingCommand, event: evClientDataComplete, line: "BYE\n", agentErr: io.EOF, leaving: clientByeForIt},
		"refusal":              {state: stateBufferingCommand, event: evClientDataComplete, line: "INPUT\n", clientErr: errTest, cause: errTest},
		"status":               {state: stateWaitingForAgent, event: evAgentResponseComplete, line: "S x\n", clientErr: errTest, cause: errTest},
		"response":             {state: stateWaitingForAgent, event: evAgentResponseComplete, line: "OK\n", clientErr: errTest, cause: errTest},
		"response to who left": {state: stateWaitingForAgent, event: evAgentResponseComplete, line: "OK\n", clientErr: errTest, leaving: clientClosed},
		"inquiry":              {state: stateWaitingForAgent, event: evAgentResponseComplete, line: "INQUIRE x\n", clientErr: errTest, cause: errTest},
	} {
		t.Run(name, func(t *testing.T) {
			ses, client, agent := sessionIn(c.state)
			client.WriteErr, agent.WriteErr = c.clientErr, c.agentErr
			ses.leaving = c.leaving
			ses.step(t.Context(), c.event, inputOf(c.line))
			require.Equal(t, stateDisconnected, ses.state)
			require.Equal(t, [2]int{1, 1}, [2]int{client.Closes, agent.Closes})
			require.ErrorIs(t, ses.cause, c.cause)
		})
	}
}

// TestCloseFromEveryState: an error or a close, wherever it comes, releases both
// sides once; a release that fails is Fatal, and does not keep the other side
// from being released; the first cause stays.
func TestCloseFromEveryState(t *testing.T) {
	for s := range numStates {
		if s.final() {
			continue
		}
		for _, e := range []event{evErrorOccurred, evCleanupRequested} {
			for _, broken := range []string{"", "client", "agent", "both"} {
				t.Run(s.String()+"/"+e.String()+"/"+broken, func(t *testing.T) { checkClose(t, s, e, broken) })
			}
		}
	}
}

func checkClose(t *testing.T, s state, e event, broken string) {
	errClient, errAgent := errors.New("client stuck"), errors.New("agent stuck")
	ses, client, agent := sessionIn(s)
	if broken == "client" || broken == "both" {
		client.CloseErr = errClient
	}
	if broken == "agent" || broken == "both" {
		agent.CloseErr = errAgent
	}
	if e == evErrorOccurred {
		_ = ses.fail(errTest)
	}
	ses.step(t.Context(), e, input{})
	completeRelease(t, ses)

	require.Equal(t, [2]int{1, 1}, [2]int{client.Closes, agent.Closes})
	if broken == "" {
		require.Equal(t, stateDisconnected, ses.state)
	} else {
		require.Equal(t, stateFatal, ses.state)
	}
	switch {
	case e == evErrorOccurred:
		require.Equal(t, errTest, ses.cause)
	case broken == "":
		require.NoError(t, ses.cause)
	case broken == "both":
		require.ErrorIs(t, ses.cause, errClient)
		require.ErrorIs(t, ses.cause, errAgent)
	}

	// Late news change nothing.
	ended, cause := ses.state, ses.cause
	ses.step(t.Context(), evErrorOccurred, input{})
	ses.step(t.Context(), evCleanupRequested, input{})
	ses.lost(t.Context(), errors.New("late"))
	require.Equal(t, ended, ses.state)
	require.Equal(t, cause, ses.cause)
	require.Equal(t, [2]int{1, 1}, [2]int{client.Closes, agent.Closes})
}

// completeRelease does what the step that led to Error or Closing goes on to
// do: a session stands there for as long as that step lasts.
func completeRelease(t *testing.T, ses *session) {
	if ses.state == stateError {
		ses.step(t.Context(), evCleanupRequested, input{})
	}
	if ses.state == stateClosing {
		ses.step(t.Context(), ses.teardown(), input{})
	}
}

// TestBenignClose: a side that was closed already has been released.
func TestBenignClose(t *testing.T) {
	ses, client, _ := sessionIn(stateReady)
	client.CloseErr = io.EOF
	ses.step(t.Context(), evCleanupRequested, input{})
	require.Equal(t, stateDisconnected, ses.state)
	require.NoError(t, ses.cause)
}
