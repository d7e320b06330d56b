package agentside

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
		Title:  "The agent session",
		Source: "agentside/machine.go",
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
	require.Len(t, m.Pairs, 9*10)
	statedoc.Check(t, "testdata/transitions.golden", m.List())
	statedoc.Check(t, "../docs/states-agent.md", m.Page())
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
		if e != evClientConnectRequested {
			require.Contains(t, []action{actIgnore, actViolation}, transitions[stateDisconnected][e].do, "%s", e)
		}
		require.Contains(t, []action{actIgnore, actViolation}, transitions[stateFatal][e].do, "%s", e)
	}
}
