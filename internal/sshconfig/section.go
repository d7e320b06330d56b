package sshconfig

import (
	"slices"
	"strings"
)

// keyword is the first word of a line, in lower case, or "" if ssh skips the line
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

// isOwn reports whether a line in a section of our block is ours, by its keyword.
func isOwn(line string) bool {
	return slices.Contains([]string{"proxycommand", "proxyusefdpass", "canonicalizehostname"}, keyword(line))
}

func isLine(want string) func(string) bool {
	return func(line string) bool { return strings.TrimSpace(line) == want }
}

func blank(lines []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool { return strings.TrimSpace(line) != "" })
}

// host is the host of a section that has the form of ours, or "".
func (s section) host() string {
	words := strings.Fields(s.head)
	if len(words) != 2 || !strings.EqualFold(words[0], "host") || !ValidHost(words[1]) {
		return ""
	}
	return words[1]
}

// isLast reports whether this is the section `Host *`, with which the block ends.
func (s section) isLast() bool {
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

// set replaces our lines, unless they are these already.
func (s *section) set(lines []string, eol string) {
	if slices.Equal(s.ours(), lines) {
		return
	}
	s.lines = slices.DeleteFunc(s.lines, isOwn)
	for i, line := range lines {
		s.lines = slices.Insert(s.lines, i, indent+line+eol)
	}
}

// index is the index of the host's section, or -1.
func (b *block) index(host string) int {
	return slices.IndexFunc(b.sections, func(s section) bool { return s.host() == host })
}

// indexOfLast is the index of the section that ends the block, or at which it belongs.
func (b *block) indexOfLast() int {
	if i := slices.IndexFunc(b.sections, section.isLast); i >= 0 {
		return i
	}
	return len(b.sections)
}

// isEmpty reports whether the block has only what we write into a new one.
func (b *block) isEmpty() bool {
	notes := func(line string) bool {
		return isLine(note)(line) || isLine(createdNote)(line) || strings.TrimSpace(line) == ""
	}
	for _, s := range b.sections {
		if s.head != "" && !s.isLast() || !blank(slices.DeleteFunc(slices.Clone(s.lines), notes)) {
			return false
		}
	}
	return true
}

// ValidHost reports whether name can be written after Host for a single host: ssh does not
// take it for a pattern, and it has no character that is special to a shell, which may read
// it where ssh replaces %n.
func ValidHost(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"
	return name != "" && name[0] != '-' && strings.Trim(name, allowed) == ""
}
