package remoteside

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/statedoc"
)

// machine returns the table as text.
func machine() statedoc.Machine {
	m := statedoc.Machine{
		Title:  "The request session",
		Source: "remoteside/transitions.go",
		Escapes: []statedoc.Pair{
			{Event: evErrorOccurred.String(), Next: stateError.String(), Action: actReport.String()},
			{Event: evCleanupRequested.String(), Next: stateClosing.String(), Action: actTeardown.String()},
		},
	}
	for s := range numStates {
		for e := range numEvents {
			p := statedoc.Pair{State: s.String(), Event: e.String()}
			if tr := transitions[s][e]; tr.do != actViolation {
				p.Next, p.Action = tr.next.String(), tr.do.String()
			}
			m.Pairs = append(m.Pairs, p)
		}
	}
	return m
}

// TestTransitions holds the table to the reviewed list of all its pairs, and
// the page in docs to the table.
func TestTransitions(t *testing.T) {
	m := machine()
	require.Len(t, m.Pairs, 11*13)
	statedoc.Check(t, "testdata/transitions.golden", m.List())
	statedoc.Check(t, "../docs/states-request.md", m.Page())
}

// TestShape holds the table to what every machine of this kind must be.
func TestShape(t *testing.T) {
	used := map[action]bool{}
	reachable := map[state]bool{stateDisconnected: true}
	for range numStates { // long enough for the longest way
		for s := range numStates {
			for e := range numEvents {
				if tr := transitions[s][e]; reachable[s] && tr.do != actViolation {
					reachable[tr.next], used[tr.do] = true, true
				}
			}
		}
	}
	for s := range numStates {
		require.True(t, reachable[s], "nothing leads to %s", s)
	}
	for do := range numActions {
		require.Equal(t, do != actViolation, used[do], "the use of %s", do)
	}
	for e := range numEvents {
		require.True(t, listed(e), "nobody expects %s", e)
	}
	requireNames(t, numStates)
	requireNames(t, numEvents)
	requireNames(t, numActions)
}

func listed(e event) bool {
	for s := range numStates {
		if transitions[s][e].do != actViolation {
			return true
		}
	}
	return false
}

// requireNames requires that all values below end have names of their own.
func requireNames[T interface {
	~uint8
	String() string
}](t *testing.T, end T) {
	t.Helper()
	seen := map[string]bool{}
	for v := range end {
		require.NotEmpty(t, v.String())
		require.False(t, seen[v.String()], "%s twice", v.String())
		seen[v.String()] = true
	}
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
