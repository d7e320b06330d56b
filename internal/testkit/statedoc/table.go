package statedoc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Named are the states, events and actions of a machine: numbers from 0 with names.
type Named interface {
	~uint8
	String() string
}

// A Table is a machine's table. States, Events and Actions are how many there are.
type Table[S, E, A Named] struct {
	States    S
	Events    E
	Actions   A
	Initial   S
	Violation A // of a pair that is not listed
	Cell      func(S, E) (next S, do A)
}

// Pairs returns all pairs, state by state.
func (table Table[S, E, A]) Pairs() (pairs []Pair) {
	for s := range table.States {
		for e := range table.Events {
			p := Pair{State: s.String(), Event: e.String()}
			if next, do := table.Cell(s, e); do != table.Violation {
				p.Next, p.Action = next.String(), do.String()
			}
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// RequireShape requires of every machine of this kind that each state can be reached, each
// action but the violation is used, each event is expected somewhere, and each of them has a
// name of its own.
func (table Table[S, E, A]) RequireShape(t *testing.T) {
	t.Helper()
	used, expected, reachable := map[A]bool{}, map[E]bool{}, map[S]bool{table.Initial: true}
	for range table.States { // no shortest path is longer
		for s := range table.States {
			for e := range table.Events {
				if next, do := table.Cell(s, e); reachable[s] && do != table.Violation {
					reachable[next], used[do], expected[e] = true, true, true
				}
			}
		}
	}
	for s := range table.States {
		require.True(t, reachable[s], "nothing leads to %s", s)
	}
	for do := range table.Actions {
		require.Equal(t, do != table.Violation, used[do], "the use of %s", do)
	}
	for e := range table.Events {
		require.True(t, expected[e], "nobody expects %s", e)
	}
	requireNames(t, table.States)
	requireNames(t, table.Events)
	requireNames(t, table.Actions)
}

// requireNames requires that each value below end has a name of its own.
func requireNames[N Named](t *testing.T, end N) {
	t.Helper()
	seen := map[string]bool{}
	for v := range end {
		require.NotEmpty(t, v.String())
		require.False(t, seen[v.String()], "%s twice", v.String())
		seen[v.String()] = true
	}
}
