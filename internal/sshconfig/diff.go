package sshconfig

import (
	"fmt"
	"slices"
	"strings"
)

// diffContext is the number of lines shown around a change, as in diff -u.
const diffContext = 3

// Diff returns the change from one content to another, as diff -u writes it, but in a
// single hunk: our block is in one place. It is "" if there is no change.
func Diff(path string, from, to []byte) string {
	a, b := slices.Collect(strings.Lines(string(from))), slices.Collect(strings.Lines(string(to)))
	head := common(a, b)
	slices.Reverse(a[head:])
	slices.Reverse(b[head:])
	tail := common(a[head:], b[head:])
	slices.Reverse(a[head:])
	slices.Reverse(b[head:])
	if head+tail == len(a) && head+tail == len(b) {
		return ""
	}
	start, context := max(head-diffContext, 0), min(tail, diffContext)
	endA, endB := len(a)-tail, len(b)-tail
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", path, path)
	fmt.Fprintf(&out, "@@ -%s +%s @@\n", lineRange(start, endA+context), lineRange(start, endB+context))
	writeLines(&out, " ", a[start:head])
	writeLines(&out, "-", a[head:endA])
	writeLines(&out, "+", b[head:endB])
	writeLines(&out, " ", a[endA:endA+context])
	return out.String()
}

// common returns how many lines at the start of a and b are equal.
func common(a, b []string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func lineRange(start, end int) string {
	if start == end {
		return fmt.Sprintf("%d,0", start)
	}
	return fmt.Sprintf("%d,%d", start+1, end-start)
}

func writeLines(out *strings.Builder, sign string, lines []string) {
	for _, line := range lines {
		out.WriteString(sign + line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
