package compat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/statedoc"
)

// table is the machine's table.
func table() statedoc.Table[state, event, action] {
	return statedoc.Table[state, event, action]{
		States: numStates, Events: numEvents, Actions: numActions, Initial: statePassing, Violation: actViolation,
		Cell: func(s state, e event) (state, action) { tr := transitions[s][e]; return tr.next, tr.do },
	}
}

// machine returns the table as text.
func machine() statedoc.Machine {
	return statedoc.Machine{
		Pairs:  table().Pairs(),
		Title:  "The repair of version skew",
		Source: "remoteside/compat/machine.go",
		Escapes: []statedoc.Pair{
			{Event: evErrorOccurred.String(), Next: stateClosed.String(), Action: actNone.String()},
			{Event: evCleanupRequested.String(), Next: stateClosed.String(), Action: actNone.String()},
		},
	}
}

// TestTransitions holds the table to the reviewed list of all its pairs, and
// the page in docs to the table.
func TestTransitions(t *testing.T) {
	m := machine()
	require.Len(t, m.Pairs, 8*16)
	statedoc.Check(t, "testdata/transitions.golden", m.List())
	statedoc.Check(t, "../../docs/states-compat.md", m.Page())
}

// TestShape holds the table to what every machine of this kind must be, and lets an
// error and a close end it in every state.
func TestShape(t *testing.T) {
	table().RequireShape(t)
	for s := range numStates {
		require.Equal(t, stateClosed, transitions[s][evErrorOccurred].next)
		require.Equal(t, stateClosed, transitions[s][evCleanupRequested].next)
	}
}
