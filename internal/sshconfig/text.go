package sshconfig

import (
	"bytes"
	"slices"
	"strings"
)

const (
	beginMark   = "# gpg-bridge: begin"
	endMark     = "# gpg-bridge: end"
	note        = "# written by gpg-bridge setup; gpg-bridge setup --undo takes it out again"
	createdNote = "# this file was made by it"
	lastHead    = "Host *"

	indent  = "    "
	byteBOM = "\uFEFF" // editors on Windows write it, and ssh there skips it
)

// A Text is the content of an ssh_config file. Its lines include their line ends.
type Text struct {
	eol    string
	bom    string
	before []string // above the block; empty, unless somebody has moved it
	block  *block   // nil if there is none
	after  []string
	fresh  bool // there was no file
}

// A block is the two marks and what is between them.
type block struct {
	begin, end string
	sections   []section // the first has no head
}

// A section is a Host or Match line with the lines that follow it.
type section struct {
	head  string
	lines []string
}

// Parse reads a file's content; nil stands for a file that does not exist. The error is a
// *MarksError if the marks do not enclose one block.
func Parse(data []byte) (*Text, error) {
	t := &Text{eol: "\n", fresh: data == nil}
	text := string(data)
	if rest, ok := strings.CutPrefix(text, byteBOM); ok {
		t.bom, text = byteBOM, rest
	}
	lines := slices.Collect(strings.Lines(text))
	if len(lines) > 0 && strings.HasSuffix(lines[0], "\r\n") {
		t.eol = "\r\n"
	}
	begins, ends := find(lines, beginMark), find(lines, endMark)
	switch {
	case len(begins) == 0 && len(ends) == 0:
		t.after = lines
	case len(begins) == 1 && len(ends) == 1 && begins[0] < ends[0]:
		begin, end := begins[0], ends[0]
		t.before, t.after = lines[:begin], lines[end+1:]
		t.block = &block{lines[begin], lines[end], split(lines[begin+1 : end])}
	default:
		return nil, &MarksError{Begins: lineNumbers(begins), Ends: lineNumbers(ends)}
	}
	return t, nil
}

func find(lines []string, mark string) (at []int) {
	for i, line := range lines {
		if strings.TrimSpace(line) == mark {
			at = append(at, i)
		}
	}
	return at
}

func lineNumbers(at []int) []int {
	numbers := make([]int, len(at))
	for i := range at {
		numbers[i] = at[i] + 1
	}
	return numbers
}

func split(lines []string) []section {
	sections := []section{{}}
	for _, line := range lines {
		if isHead(line) {
			sections = append(sections, section{head: line})
			continue
		}
		last := &sections[len(sections)-1]
		last.lines = append(last.lines, line)
	}
	return sections
}

// Bytes is the content as it is now: what was parsed, with the changes of Set and Remove.
func (t *Text) Bytes() []byte {
	var b bytes.Buffer
	b.WriteString(t.bom)
	write := func(lines ...string) {
		for _, line := range lines {
			b.WriteString(line)
		}
	}
	write(t.before...)
	if t.block != nil {
		write(t.block.begin)
		for _, s := range t.block.sections {
			write(s.head)
			write(s.lines...)
		}
		write(t.block.end)
	}
	write(t.after...)
	return b.Bytes()
}

// Hosts are the hosts in our block that have lines of ours.
func (t *Text) Hosts() []string {
	var names []string
	if t.block == nil {
		return nil
	}
	for _, s := range t.block.sections {
		if name := s.host(); name != "" && len(s.ours()) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Lines are our lines for the host, without indentation, or nil.
func (t *Text) Lines(host string) []string {
	if t.block == nil {
		return nil
	}
	if i := t.block.index(host); i >= 0 {
		return t.block.sections[i].ours()
	}
	return nil
}

// Set replaces our lines for the host. Each must begin with one of the keywords
// ProxyCommand, ProxyUseFdpass and CanonicalizeHostname. What somebody else wrote into our
// block stays.
func (t *Text) Set(host string, lines ...string) {
	if t.block == nil {
		t.block = t.newBlock()
	}
	b := t.block
	i := b.index(host)
	if i < 0 {
		i = b.indexOfLast()
		b.sections = slices.Insert(b.sections, i, section{head: "Host " + host + t.eol})
	}
	b.sections[i].set(lines, t.eol)
	if last := b.sections[len(b.sections)-1]; !last.isLast() {
		b.sections = append(b.sections, section{head: lastHead + t.eol})
	}
}

// newBlock returns a block without hosts. It comes before all else, so it does not matter
// if the file's last line lacks its line end.
func (t *Text) newBlock() *block {
	notes := []string{note + t.eol}
	if t.fresh {
		notes = append(notes, createdNote+t.eol)
	}
	return &block{beginMark + t.eol, endMark + t.eol, []section{{lines: notes}, {head: lastHead + t.eol}}}
}

// Remove removes our lines for the host, and the block if nothing is left in it. It reports
// whether there were any.
func (t *Text) Remove(host string) bool {
	if len(t.Lines(host)) == 0 {
		return false
	}
	b := t.block
	i := b.index(host)
	b.sections[i].set(nil, t.eol)
	if blank(b.sections[i].lines) {
		b.sections = slices.Delete(b.sections, i, i+1)
	}
	if b.isEmpty() {
		t.fresh = slices.ContainsFunc(b.sections[0].lines, isLine(createdNote))
		t.block = nil
		t.keepScope()
	}
	return true
}

// keepScope keeps what follows the removed block from becoming part of a section above it,
// if the block was not at the top.
func (t *Text) keepScope() {
	code := func(line string) bool { return keyword(line) != "" }
	if i := slices.IndexFunc(t.after, code); i >= 0 && !isHead(t.after[i]) && slices.ContainsFunc(t.before, isHead) {
		t.after = slices.Insert(t.after, 0, lastHead+t.eol)
	}
}

// IsNothing reports whether the file need not exist: the text is empty, and the file did
// not exist, or was created for our block.
func (t *Text) IsNothing() bool { return t.fresh && len(t.Bytes()) == 0 }

// HasBlock reports whether our block is there, even if only with somebody else's lines.
func (t *Text) HasBlock() bool { return t.block != nil }
