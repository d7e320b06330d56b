package remoteside

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/statedoc"
)

// table is the machine's table.
func table() statedoc.Table[state, event, action] {
	return statedoc.Table[state, event, action]{
		States: numStates, Events: numEvents, Actions: numActions, Initial: stateDisconnected, Violation: actViolation,
		Cell: func(s state, e event) (state, action) { tr := transitions[s][e]; return tr.next, tr.do },
	}
}

// machine returns the table as text.
func machine() statedoc.Machine {
	return statedoc.Machine{
		Pairs:  table().Pairs(),
		Title:  "The request session",
		Source: "remoteside/transitions.go",
		Escapes: []statedoc.Pair{
			{Event: evErrorOccurred.String(), Next: stateError.String(), Action: actReport.String()},
			{Event: evCleanupRequested.String(), Next: stateClosing.String(), Action: actTeardown.String()},
		},
	}
}

// TestTransitions holds the table to the reviewed list of all its pairs, and
// the page in docs to the table.
func TestTransitions(t *testing.T) {
	m := machine()
	require.Len(t, m.Pairs, 11*13)
	statedoc.Check(t, "testdata/transitions.golden", m.List())
	statedoc.Check(t, "../docs/states-request.md", m.Page()+leavingPage())
}

// leavingPage is the client's own table.
func leavingPage() string {
	page := "\n## How the client leaves\n\n" +
		"A machine of its own (remoteside/leaving.go): its events come in any of the states above, and it ends nothing by itself.\n\n" +
		"| client | event | next |\n|---|---|---|\n"
	for c := range numClientStates {
		for e := range numClientEvents {
			if next := clientTransitions[c][e]; next != c {
				page += "| " + c.String() + " | " + e.String() + " | " + next.String() + " |\n"
			}
		}
	}
	return page
}

// TestShape holds the table to what every machine of this kind must be.
func TestShape(t *testing.T) {
	table().RequireShape(t)
}

// TestEndsStay: an error and a close are listed in every state, lead out of
// every ordinary one, and change nothing where the session has ended.
func TestEndsStay(t *testing.T) {
	for s := range numStates {
		failed, closed := transitions[s][evErrorOccurred], transitions[s][evCleanupRequested]
		switch s {
		case stateDisconnected, stateFatal, stateClosing:
			require.Equal(t, transition{s, actIgnore}, failed, "%s", s)
			require.Equal(t, transition{s, actIgnore}, closed, "%s", s)
		case stateError:
			require.Equal(t, transition{s, actIgnore}, failed)
			require.Equal(t, transition{stateClosing, actTeardown}, closed)
		default:
			require.Equal(t, transition{stateError, actReport}, failed, "%s", s)
			require.Equal(t, transition{stateClosing, actTeardown}, closed, "%s", s)
		}
		require.Equal(t, s == stateDisconnected || s == stateFatal, s.final(), "%s", s)
	}
	for e := range numEvents {
		if e != evClientSocketConnected {
			require.Contains(t, []action{actIgnore, actViolation}, transitions[stateDisconnected][e].do, "%s", e)
		}
		require.Contains(t, []action{actIgnore, actViolation}, transitions[stateFatal][e].do, "%s", e)
	}
}
