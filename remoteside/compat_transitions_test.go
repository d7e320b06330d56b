package remoteside

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/statedoc"
)

// compatMachine returns the table as text.
func compatMachine() statedoc.Machine {
	m := statedoc.Machine{
		Title:  "The repair of version skew",
		Source: "remoteside/compat_machine.go",
		Escapes: []statedoc.Pair{
			{Event: cevErrorOccurred.String(), Next: compatClosed.String(), Action: cactNone.String()},
			{Event: cevCleanupRequested.String(), Next: compatClosed.String(), Action: cactNone.String()},
		},
	}
	for s := range numCompatStates {
		for e := range numCompatEvents {
			p := statedoc.Pair{State: s.String(), Event: e.String()}
			if tr := compatTransitions[s][e]; tr.do != cactViolation {
				p.Next, p.Action = tr.next.String(), tr.do.String()
			}
			m.Pairs = append(m.Pairs, p)
		}
	}
	return m
}

// TestTransitionsOfCompat is TestTransitions for the repair's table.
func TestTransitionsOfCompat(t *testing.T) {
	m := compatMachine()
	require.Len(t, m.Pairs, 8*16)
	statedoc.Check(t, "testdata/compat-transitions.golden", m.List())
	statedoc.Check(t, "../docs/states-compat.md", m.Page())
}

func TestShapeOfCompat(t *testing.T) {
	used := map[compatAction]bool{}
	expected := map[compatEvent]bool{}
	reachable := map[compatState]bool{compatPassing: true}
	for range numCompatStates { // long enough for the longest way
		for s := range numCompatStates {
			for e := range numCompatEvents {
				if tr := compatTransitions[s][e]; reachable[s] && tr.do != cactViolation {
					reachable[tr.next], used[tr.do], expected[e] = true, true, true
				}
			}
		}
	}
	for s := range numCompatStates {
		require.True(t, reachable[s], "nothing leads to %s", s)
		require.Equal(t, compatClosed, compatTransitions[s][cevErrorOccurred].next)
		require.Equal(t, compatClosed, compatTransitions[s][cevCleanupRequested].next)
	}
	for do := range numCompatActions {
		require.Equal(t, do != cactViolation, used[do], "the use of %s", do)
	}
	for e := range numCompatEvents {
		require.True(t, expected[e], "nobody expects %s", e)
	}
	requireNames(t, numCompatStates)
	requireNames(t, numCompatEvents)
	requireNames(t, numCompatActions)
}
