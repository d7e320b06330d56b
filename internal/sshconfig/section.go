package sshconfig

import (
	"slices"
	"strings"
)

// ownKeywords are those of the lines that are ours in a section of our block.
func ownKeywords() []string {
	return []string{"proxycommand", "proxyusefdpass", "canonicalizehostname"}
}

// keyword is the first word of a line in lower case, or "" where ssh reads none
// (process_config_line_depth in OpenSSH's readconf.c).
func keyword(line string) string {
	line = strings.TrimLeft(line, " \t\r\n\f")
	if strings.HasPrefix(line, "#") {
		return ""
	}
	if end := strings.IndexAny(line, " \t\r\n\f="); end >= 0 {
		line = line[:end]
	}
	return strings.ToLower(strings.Trim(line, `"`))
}

func isHead(line string) bool {
	key := keyword(line)
	return key == "host" || key == "match"
}

func isOwn(line string) bool { return slices.Contains(ownKeywords(), keyword(line)) }

func isLine(want string) func(string) bool {
	return func(line string) bool { return strings.TrimSpace(line) == want }
}

func blank(lines []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool { return strings.TrimSpace(line) != "" })
}

// host is the name of a section as we write it, or "".
func (s section) host() string {
	words := strings.Fields(s.head)
	if len(words) != 2 || !strings.EqualFold(words[0], "host") || !ValidHost(words[1]) {
		return ""
	}
	return words[1]
}

func (s section) closes() bool {
	words := strings.Fields(s.head)
	return len(words) == 2 && strings.EqualFold(words[0], "host") && words[1] == "*"
}

// ours are our lines in the section, without indentation.
func (s section) ours() (lines []string) {
	for _, line := range s.lines {
		if isOwn(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// set replaces our lines, where they were not these already.
func (s *section) set(lines []string, eol string) {
	if slices.Equal(s.ours(), lines) {
		return
	}
	s.lines = slices.DeleteFunc(s.lines, isOwn)
	for i, line := range lines {
		s.lines = slices.Insert(s.lines, i, indent+line+eol)
	}
}

// index is where the host's section is, or -1.
func (b *block) index(host string) int {
	return slices.IndexFunc(b.sections, func(s section) bool { return s.host() == host })
}

// closing is where the section is that ends the block, or would be.
func (b *block) closing() int {
	if i := slices.IndexFunc(b.sections, section.closes); i >= 0 {
		return i
	}
	return len(b.sections)
}

// isEmpty: nothing is there that we would not write again.
func (b *block) isEmpty() bool {
	notes := func(line string) bool {
		return isLine(note)(line) || isLine(createdNote)(line) || strings.TrimSpace(line) == ""
	}
	for _, s := range b.sections {
		if s.head != "" && !s.closes() || !blank(slices.DeleteFunc(slices.Clone(s.lines), notes)) {
			return false
		}
	}
	return true
}

// ValidHost reports whether name is one host's, as it may stand behind Host:
// nothing that ssh takes for a pattern, and nothing that a shell would read when
// ssh puts it in the place of %n.
func ValidHost(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"
	return name != "" && name[0] != '-' && strings.Trim(name, allowed) == ""
}
