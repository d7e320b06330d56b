//go:build unix

package faults

import (
	"fmt"
	"strings"
)

const pageHead = `# What comes of a fault

Generated from the tables in internal/faults by its tests (` + "`go test ./internal/faults -run TestPage -update`" + `): change those, not this page.

Each fault is injected into each state that a session rests in, which makes %d pairs; ` + "`go test ./internal/faults -run TestEveryFaultInEveryState`" + ` plays them all: both machines between a client and an agent that are played, over Unix sockets, TCP sockets with a nonce, and SSH channels. In each pair another session, beside it, completes a command afterwards, unless what ended was its own agent, connection or bridge; and in the end there is no session, no connection to the agent and no descriptor left. When a session ends, both sides are told within a second, unless the outcome says otherwise. What whole processes do to each other, real ones, is in the last table.

The states are those of the machines' tables ([the session](states-request.md), [its agent's](states-agent.md), [the repair between them](states-compat.md)), and a test holds this page to those.

`

// page writes docs/faults.md.
func page(all []cell) string {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, len(all))
	b.WriteString("## States\n\n| | session, agent, repair | what it is |\n|---|---|---|\n")
	for _, s := range situations {
		fmt.Fprintf(&b, "| %s | %s, %s, %s | %s |\n", s.name, s.request, s.agent, s.compat, s.means)
	}
	b.WriteString("\nIn the others no session rests:\n\n")
	for _, m := range machines {
		for _, state := range sorted(transient[m.name]) {
			fmt.Fprintf(&b, "* %s (%s): %s\n", state, m.title, transient[m.name][state])
		}
	}
	b.WriteString("\n## Faults\n\n| | what it is |\n|---|---|\n")
	for _, f := range faults {
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, f.means)
	}
	b.WriteString("\n## Outcomes\n\n| | what it is |\n|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %s |\n", o.word, o.means)
	}
	b.WriteString("\n## The pairs\n")
	writePairs(&b, all)
	writeScenes(&b)
	return b.String()
}

// writePairs writes all pairs, in tables of a few states each.
func writePairs(b *strings.Builder, all []cell) {
	const columns = 7
	for first := 0; first < len(situations); first += columns {
		last := min(first+columns, len(situations))
		b.WriteString("\n|")
		for _, s := range situations[first:last] {
			fmt.Fprintf(b, " | %s", s.name)
		}
		fmt.Fprintf(b, " |\n|%s\n", strings.Repeat("---|", last-first+1))
		for i, f := range faults {
			fmt.Fprintf(b, "| **%s**", f.name)
			for _, c := range all[i*len(situations)+first : i*len(situations)+last] {
				fmt.Fprintf(b, " | %s", c.want.word)
			}
			b.WriteString(" |\n")
		}
	}
}

const scenesHead = `
## Whole processes

Four clients at once on one bridge, and the fault: ` + "`go test ./internal/e2e -run TestFaultsOfProcesses`" + `.

| fault | idle | pinentry open | inquiry | ungreeted | afterwards |
|---|---|---|---|---|---|
`

func writeScenes(b *strings.Builder) {
	b.WriteString(scenesHead)
	for _, s := range Scenes {
		fmt.Fprintf(b, "| **%s**: %s | %s | %s | %s | %s | %s |\n", s.Name, s.Means, s.Idle, s.Pending, s.Inquiry, s.Ungreeted, s.After)
	}
}
