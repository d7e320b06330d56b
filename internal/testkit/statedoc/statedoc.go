// Package statedoc prints a session's state machine: as the list of all its
// pairs, which the tests compare with a reviewed one, and as the page in docs/
// with its diagram. The machines' tables are private to their packages, so
// the packages' tests pass them as text.
package statedoc

import (
	"fmt"
	"strings"
)

// A Pair is one cell of a machine's table.
type Pair struct {
	State, Event string
	Next, Action string // Next is empty for a violation
}

// A Machine is a table as text, state by state. The first state is the initial
// one.
type Machine struct {
	Title  string // the page's heading
	Source string // the files that the page is made from
	Pairs  []Pair

	// Escapes are the transitions that every state of an ordinary session has: the diagram
	// draws them once for all those states.
	Escapes []Pair
}

// List returns all pairs, one on each line, violations too.
func (m Machine) List() string {
	var b strings.Builder
	for _, p := range m.Pairs {
		if p.Next == "" {
			fmt.Fprintf(&b, "%s %s -> violation\n", p.State, p.Event)
			continue
		}
		fmt.Fprintf(&b, "%s %s -> %s %s\n", p.State, p.Event, p.Next, p.Action)
	}
	return b.String()
}

// Page returns the Markdown page: the diagram, and the pairs that are listed.
func (m Machine) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", m.Title)
	fmt.Fprintf(&b, "Generated from %s by the package's tests (`go test -run TestTransitions -update`): change the table, not this page.\n\n", m.Source)
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	m.diagram(&b)
	b.WriteString("```\n\nIn every other pair of a state and an event the event is a violation, which ends the session through `ErrorOccurred`.\n\n")
	b.WriteString("| state | event | next state | action |\n|---|---|---|---|\n")
	for _, p := range m.Pairs {
		if p.Next != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.State, p.Event, p.Next, p.Action)
		}
	}
	return b.String()
}

// diagram draws every pair but violations and what is ignored. The states that have all the
// escapes are drawn inside one state.
func (m Machine) diagram(b *strings.Builder) {
	inside := m.ordinary()
	fmt.Fprintf(b, "    [*] --> %s\n    state Session {\n", m.Pairs[0].State)
	for _, p := range m.Pairs {
		if inside[p.State] && inside[p.Next] {
			fmt.Fprintf(b, "        %s --> %s : %s\n", p.State, p.Next, p.Event)
		}
	}
	b.WriteString("    }\n")
	for _, e := range m.Escapes {
		fmt.Fprintf(b, "    Session --> %s : %s\n", e.Next, e.Event)
	}
	for _, p := range m.Pairs {
		if p.Next != "" && p.Action != "ignore" && !inside[p.State] {
			fmt.Fprintf(b, "    %s --> %s : %s\n", p.State, p.Next, p.Event)
		}
	}
}

// ordinary returns the states that have all the escapes.
func (m Machine) ordinary() map[string]bool {
	found := map[string]int{}
	for _, p := range m.Pairs {
		for _, e := range m.Escapes {
			if p.Event == e.Event && p.Next == e.Next && p.Action == e.Action {
				found[p.State]++
			}
		}
	}
	inside := map[string]bool{}
	for state, n := range found {
		inside[state] = n == len(m.Escapes)
	}
	return inside
}
