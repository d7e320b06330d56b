package remoteside

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLeavingPairs holds each pair of a client's state and an event to what the names say.
func TestLeavingPairs(t *testing.T) {
	type facts struct{ closed, bye, byeForIt bool }
	of := func(c clientState) facts { return facts{c.closed(), c.bye(), c.byeForIt()} }
	want := [numClientStates]facts{
		clientStays:     {},
		clientSaidBye:   {bye: true},
		clientClosed:    {closed: true},
		clientByeClosed: {closed: true, bye: true},
		clientByeForIt:  {closed: true, bye: true, byeForIt: true},
	}
	for c := range numClientStates {
		require.Equal(t, want[c], of(c), "%s", c)
		for e := range numClientEvents {
			next := of(c)
			switch e {
			case clientBye:
				next.bye = true
			case clientEOF:
				next.closed = true
			case clientNoBye:
				if c.closed() && !c.bye() {
					next.bye, next.byeForIt = true, true
				}
			}
			moved := c
			moved.on(e)
			require.Equal(t, next, of(moved), "%s %s", c, e)
		}
	}
}

// TestLeavingShape: each state can be reached, and has a name of its own, as each event.
func TestLeavingShape(t *testing.T) {
	reached, names := map[clientState]bool{clientStays: true}, map[string]bool{}
	for range numClientStates {
		for c := range numClientStates {
			for e := range numClientEvents {
				if reached[c] {
					reached[clientTransitions[c][e]] = true
				}
			}
		}
	}
	require.Len(t, reached, int(numClientStates))
	for c := range numClientStates {
		names[c.String()] = true
	}
	for e := range numClientEvents {
		names[e.String()] = true
	}
	delete(names, "")
	require.Len(t, names, int(numClientStates)+int(numClientEvents))
}

// TestLeavingInEveryState: a BYE and a last byte change nothing in the session's own
// state, wherever they come; where it ends is for its table to say.
func TestLeavingInEveryState(t *testing.T) {
	for s := range numStates {
		for c := range numClientStates {
			ses, _, agent := sessionIn(s)
			ses.leaving = c
			over := c.bye() && s == stateReady
			require.Equal(t, over, ses.isOver(), "%s %s", s, c)
			ses.drain(t.Context())
			switch {
			case c == clientClosed && s == stateReady:
				require.Equal(t, clientByeForIt, ses.leaving)
				require.Equal(t, "BYE\n", agent.Written())
				require.Equal(t, stateWaitingForAgent, ses.state)
			case c.closed() && !over && s.takesLines():
				require.Equal(t, stateDisconnected, ses.state, "nothing more is to come")
				require.Empty(t, agent.Written())
			default:
				require.Equal(t, s, ses.state, "%s %s", s, c)
				require.Equal(t, c, ses.leaving)
				require.Empty(t, agent.Written())
			}
		}
	}
}

// TestLost walks what the end of a connection means, by the client's state: "" is an
// orderly end.
func TestLost(t *testing.T) {
	broken := errTest
	for _, test := range []struct {
		name          string
		state         state
		err           error
		broken        bool
		stays, closed error // of a client that has not said BYE
		bye           error // of one that has, whether it has closed or not
	}{
		{name: "agent closed", state: stateReady, err: io.EOF, closed: errClientGone},
		{name: "agent closed in an inquiry", state: stateBufferingInquire, err: io.EOF, stays: errAgentGone, closed: errClientGone, bye: errAgentGone},
		{name: "connection closed", state: stateWaitingForAgent, err: net.ErrClosed, closed: errClientGone},
		{name: "from outside", state: stateWaitingForAgent, err: net.ErrClosed, broken: true, stays: broken, closed: broken},
		{name: "from outside in an inquiry", state: stateBufferingInquire, err: io.EOF, broken: true, stays: broken, closed: broken},
		{name: "from outside, otherwise", state: stateReady, err: io.ErrUnexpectedEOF, broken: true, stays: broken, closed: broken},
	} {
		for c := range numClientStates {
			t.Run(test.name+"/"+c.String(), func(t *testing.T) {
				ses, _, _ := sessionIn(test.state)
				ses.leaving = c
				if test.broken {
					ses.noteBroken(broken)
				}
				want := test.bye
				switch c {
				case clientStays:
					want = test.stays
				case clientClosed:
					want = test.closed
				}
				ses.lost(t.Context(), test.err)
				require.Equal(t, stateDisconnected, ses.state)
				require.Equal(t, want, ses.cause)
			})
		}
	}
	for c, want := range map[clientState]error{
		clientStays: io.ErrUnexpectedEOF, clientSaidBye: io.ErrUnexpectedEOF, clientClosed: errClientGone, clientByeClosed: nil, clientByeForIt: nil,
	} {
		ses, _, _ := sessionIn(stateReady)
		ses.leaving = c
		ses.lost(t.Context(), io.ErrUnexpectedEOF)
		require.Equal(t, want, ses.cause, "a failure, when the client %s", c)
	}
}
