package main

import (
	"fmt"
	"os"
	"strings"
)

// equivalents are the changes that no test can notice, since the changed code means the same.
type equivalents struct {
	lines map[string]bool // as mutant.String has it
}

// readEquivalents reads a file of blocks: a comment that gives the reason, then
// the changes that it is about. A change without a reason is an error.
func readEquivalents(path string) (*equivalents, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	e := &equivalents{lines: map[string]bool{}}
	reason := false
	for number, line := range strings.Split(string(content), "\n") {
		switch line = strings.TrimSpace(line); {
		case line == "":
			reason = false
		case strings.HasPrefix(line, "#"):
			reason = true
		case !reason:
			return nil, fmt.Errorf("%s:%d: no reason is given", path, number+1)
		default:
			e.lines[line] = true
		}
	}
	return e, nil
}

func (e *equivalents) has(m mutant) bool { return e.lines[m.String()] }

// unused returns the lines about the target's files that match no survivor.
func (e *equivalents) unused(t target, found []mutant) (lines []string) {
	survivors := map[string]bool{}
	files := map[string]bool{}
	for _, m := range found {
		files[m.file] = true
		if m.status == "LIVED" {
			survivors[m.String()] = true
		}
	}
	for line := range e.lines {
		file, _, _ := strings.Cut(line, " | ")
		if files[file] && !survivors[line] {
			lines = append(lines, line)
		}
	}
	return lines
}
