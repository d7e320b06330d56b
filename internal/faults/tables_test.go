//go:build unix

package faults

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/statedoc"
)

// expected has the outcome of each pair: a line for each fault, and on it the word of an
// outcome for each situation, in their order, between bars.
const expected = `
client closes        | later    | ends     | left     | left     | left     | ends     | ends     | ends     | left     | later    | ends     | ends     | given up | broken   | ends     | left     | left     | left     | left     | left
client half-closes   | later    | ends     | left     | left     | left     | ends     | ends     | ends     | left     | later    | ends     | ends     | given up | left     | ends     | left     | left     | left     | left     | left
client resets        | later    | broken   | broken   | broken   | broken   | broken   | broken   | broken   | broken   | later    | broken   | broken   | given up | broken   | broken   | broken   | broken   | broken   | broken   | broken
client sends garbage | later    | garbled  | later    | later    | later    | garbled  | garbled  | garbled  | later    | later    | garbled  | garbled  | given up | later    | later    | later    | later    | later    | later    | later
SSH channel closes   | later    | ends     | left     | left     | left     | ends     | ends     | ends     | left     | later    | ends     | ends     | given up | broken   | ends     | left     | left     | left     | left     | left
SSH connection ends  | closed   | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut      | cut
bridge ends          | closed   | shut     | shut     | shut     | shut     | shut     | shut     | shut     | shut     | shut     | shut     | shut     | shut     | shut     | ends     | shut     | shut     | shut     | shut     | shut
agent closes         | no agent | no agent | no agent | no agent | no agent | served   | ends     | ends     | lost     | lost     | gone     | lost     | lost     | later    | ends     | lost     | lost     | lost     | later    | lost
agent resets         | served   | served   | no agent | no agent | no agent | served   | lost     | lost     | lost     | lost     | lost     | lost     | lost     | later    | lost     | lost     | lost     | lost     | later    | lost
agent restarts       | served   | served   | served   | no agent | no agent | served   | ends     | ends     | lost     | lost     | gone     | lost     | lost     | later    | ends     | lost     | lost     | lost     | later    | lost
agent says garbage   | waits    | served   | no agent | no agent | no agent | served   | refused  | refused  | refused  | refused  | refused  | refused  | given up | later    | refused  | refused  | refused  | refused  | later    | refused
agent says 10 MB     | no agent | no agent | no agent | no agent | no agent | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served
agent dribbles       | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served   | served
agent is silent      | waits    | waits    | no agent | no agent | no agent | served   | waits    | waits    | waits    | waits    | waits    | waits    | given up | waits    | waits    | waits    | waits    | waits    | waits    | waits
`

// A cell is a pair and its outcome.
type cell struct {
	state situation
	fault fault
	want  outcome
}

func (c cell) name() string { return c.state.name + "/" + c.fault.name }

// cells returns the product of all situations and all faults; a pair without an
// outcome is an error.
func cells() ([]cell, error) {
	rows := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(expected)) {
		words := strings.Split(strings.TrimSpace(line), "|")
		for i := range words {
			words[i] = strings.TrimSpace(words[i])
		}
		rows[words[0]] = words[1:]
	}
	var all []cell
	for _, f := range faults {
		words := rows[f.name]
		if len(words) != len(situations) {
			return nil, fmt.Errorf("%q has outcomes for %d of %d situations", f.name, len(words), len(situations))
		}
		delete(rows, f.name)
		for i, state := range situations {
			at := slices.IndexFunc(outcomes, func(o outcome) bool { return o.word == words[i] })
			if at < 0 {
				return nil, fmt.Errorf("%s/%s: no outcome %q", state.name, f.name, words[i])
			}
			all = append(all, cell{state, f, outcomes[at]})
		}
	}
	if len(rows) > 0 {
		return nil, fmt.Errorf("outcomes of faults that there are not: %v", rows)
	}
	return all, nil
}

// machines are the tables from which the states come, as their tests print them, and the
// state of each machine in a situation.
var machines = []struct {
	name, title, golden string
	of                  func(situation) string
}{
	{"request", "the session", "../../remoteside/testdata/transitions.golden", func(s situation) string { return s.request }},
	{"agent", "its agent's", "../../agentside/testdata/transitions.golden", func(s situation) string { return s.agent }},
	{"compat", "the repair", "../../remoteside/compat/testdata/transitions.golden", func(s situation) string { return s.compat }},
}

// TestEveryStateHasItsPlace: each state of each machine either occurs in a situation, or has
// a reason why no session rests there; not both, and there are no other states.
func TestEveryStateHasItsPlace(t *testing.T) {
	for _, m := range machines {
		states := statesOf(t, m.golden)
		rested := map[string]bool{}
		for _, s := range situations {
			if state := m.of(s); state != "-" {
				require.Contains(t, states, state, "%s is in a state that there is not", s.name)
				rested[state] = true
			}
		}
		for state := range transient[m.name] {
			require.Contains(t, states, state)
		}
		for _, state := range states {
			require.NotEqual(t, rested[state], transient[m.name][state] != "", "the %s machine's %s: bring a session there in states_test.go, or say why it does not rest there", m.name, state)
		}
	}
}

// statesOf returns the states of a machine, in their order.
func statesOf(t *testing.T, golden string) []string {
	t.Helper()
	text, err := os.ReadFile(golden)
	require.NoError(t, err)
	var states []string
	for line := range strings.Lines(string(text)) {
		if state, _, _ := strings.Cut(line, " "); !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	require.Greater(t, len(states), 5)
	return states
}

func sorted(reasons map[string]string) []string {
	return slices.Sorted(maps.Keys(reasons))
}

// TestPage holds the page in docs to the tables.
func TestPage(t *testing.T) {
	all, err := cells()
	require.NoError(t, err)
	statedoc.Check(t, "../../docs/faults.md", page(all))
}
