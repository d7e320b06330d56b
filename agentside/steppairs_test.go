package agentside

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// outcome is what is left after an event and all that it caused.
type outcome struct {
	state     state
	agent     string // what was written to it
	closed    bool   // once
	cause     error
	violation bool // cause is the *ViolationError of the pair
}

// pairs holds what must come of the listed pairs, but for the columns of close
// and error; see expected.
var pairs = []struct {
	state state
	event event
	line  string
	want  outcome
}{
	{stateDisconnected, evClientConnectRequested, "", outcome{state: stateWaitingForAgent, agent: "nonce\n"}},
	{stateConnectingToAgent, evAgentSocketConnected, "", outcome{state: stateWaitingForAgent, agent: "nonce\n"}},
	{stateSocketConnected, evClientDataReceived, "", outcome{state: stateWaitingForAgent, agent: "nonce\n"}},
	{stateReady, evClientDataReceived, "NOP\n", outcome{state: stateWaitingForAgent, agent: "NOP\n"}},
	{stateReady, evClientDataReceived, "END\n", outcome{state: stateWaitingForAgent, agent: "END\n"}},
	{stateReady, evClientDataReceived, "CAN\n", outcome{state: stateWaitingForAgent, agent: "CAN\n"}},
	{stateReady, evClientDataReceived, "D END\n", outcome{state: stateSendingToAgent}},
	{stateSendingToAgent, evClientDataReceived, "d x\n", outcome{state: stateSendingToAgent}},
	{stateSendingToAgent, evClientDataReceived, "end\n", outcome{state: stateWaitingForAgent, agent: "end\n"}},
	{stateSendingToAgent, evAgentWriteOK, "", outcome{state: stateWaitingForAgent}},
	{stateWaitingForAgent, evAgentDataChunk, "S x\n", outcome{state: stateWaitingForAgent}},
	{stateWaitingForAgent, evAgentDataReceived, "OK\n", outcome{state: stateReady}},
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
	ses, conn := sessionIn(s)
	if e == evErrorOccurred {
		require.Equal(t, e, ses.fail(errTest))
	}
	err := ses.step(t.Context(), e, []byte(line))
	require.Equal(t, want.state.String(), ses.state.String())
	require.Equal(t, want.agent, conn.String())
	closes := 0
	if want.closed {
		closes = 1
	}
	require.Equal(t, closes, conn.closes)
	require.Equal(t, ses.cause, err)
	if want.violation {
		require.Equal(t, &ViolationError{State: s.String(), Event: e.String()}, ses.cause)
		return
	}
	require.Equal(t, want.cause, ses.cause)
}

// sessionIn returns a session in a state, and what records its connection.
func sessionIn(s state) (*Session, *recordConn) {
	conn := &recordConn{}
	ses := &Session{at: &fakeEndpoint{conn: conn}, state: s}
	if s != stateDisconnected && s != stateConnectingToAgent {
		ses.conn, ses.closeConn = conn, sync.OnceValue(conn.Close)
		ses.out = bufio.NewWriterSize(conn, writeBuffer)
	}
	if s == stateConnectingToAgent { // where only actDial can have left it
		ses.dial(nil)
	}
	return ses, conn
}

// TestStepFailures: what an action cannot do ends the session, with the reason
// as its cause.
func TestStepFailures(t *testing.T) {
	for name, c := range map[string]struct {
		state     state
		event     event
		line      string
		at        fakeEndpoint
		writeErr  error
		notDialed bool
	}{
		"dial":         {state: stateDisconnected, event: evClientConnectRequested, at: fakeEndpoint{dialErr: errTest}, notDialed: true},
		"credentials":  {state: stateSocketConnected, event: evClientDataReceived, at: fakeEndpoint{authErr: errTest}},
		"command":      {state: stateReady, event: evClientDataReceived, line: "NOP\n", writeErr: errTest},
		"end of block": {state: stateSendingToAgent, event: evClientDataReceived, line: "END\n", writeErr: errTest},
	} {
		t.Run(name, func(t *testing.T) {
			ses, conn := sessionIn(c.state)
			ses.at, conn.writeErr = &c.at, c.writeErr
			require.ErrorIs(t, ses.step(t.Context(), c.event, []byte(c.line)), errTest)
			require.Equal(t, stateDisconnected, ses.state)
			require.Equal(t, !c.notDialed, conn.closes == 1)
		})
	}
}

// TestCloseFromEveryState: an error or a close, wherever it comes, releases the
// connection once; a release that fails is Fatal; the first cause stays.
func TestCloseFromEveryState(t *testing.T) {
	for s := range numStates {
		if s.final() {
			continue
		}
		for _, e := range []event{evErrorOccurred, evCleanupRequested} {
			for _, closeErr := range []error{nil, errors.New("stuck")} {
				name := s.String() + "/" + e.String()
				if closeErr != nil {
					name += "/stuck"
				}
				t.Run(name, func(t *testing.T) { checkClose(t, s, e, closeErr) })
			}
		}
	}
}

func checkClose(t *testing.T, s state, e event, closeErr error) {
	ses, conn := sessionIn(s)
	conn.closeErr = closeErr
	if e == evErrorOccurred {
		_ = ses.fail(errTest)
	}
	_ = ses.step(t.Context(), e, nil)
	completeRelease(t, ses)

	require.Equal(t, 1, conn.closes)
	wantState, wantCause := stateDisconnected, closeErr
	if closeErr != nil {
		wantState = stateFatal
	}
	if e == evErrorOccurred {
		wantCause = errTest
	}
	require.Equal(t, wantState, ses.state)
	require.ErrorIs(t, ses.cause, wantCause)

	// Nothing that comes later changes anything.
	cause := ses.cause
	if closeErr != nil {
		require.Equal(t, cause, ses.Close())
	} else {
		require.NoError(t, ses.Close())
	}
	after := cause
	if after == nil {
		after = io.EOF
	}
	require.Equal(t, after, ses.WriteLine([]byte("NOP\n")))
	_, _, err := ses.ReadLine()
	require.Equal(t, after, err)
	_ = ses.step(t.Context(), evErrorOccurred, nil)
	require.Equal(t, wantState, ses.state)
	require.Equal(t, cause, ses.cause)
	require.Equal(t, 1, conn.closes)
	require.Empty(t, conn.String())
}

// completeRelease does what the step that led to Error or Closing goes on to
// do: a session stands there for as long as that step lasts.
func completeRelease(t *testing.T, ses *Session) {
	if ses.state == stateError {
		_ = ses.step(t.Context(), evCleanupRequested, nil)
	}
	if ses.state == stateClosing {
		_ = ses.step(t.Context(), ses.teardown(), nil)
	}
}

// TestBlockLeavesAsOneWrite: the lines of an inquiry's answer wait for the one
// that the agent answers.
func TestBlockLeavesAsOneWrite(t *testing.T) {
	ses, conn := sessionIn(stateReady)
	for _, line := range []string{"D one\n", "d END\n", "D three\n", "END\n"} {
		require.NoError(t, ses.WriteLine([]byte(line)))
	}
	require.Equal(t, "D one\nd END\nD three\nEND\n", conn.String())
	require.Equal(t, 1, conn.writes)
	require.Equal(t, stateWaitingForAgent, ses.state)
}
