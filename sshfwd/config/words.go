package config

import (
	"fmt"
	"strings"
)

// SplitArguments splits a command into words as ssh does, with quotes and
// backslashes but without a shell (argv_split in OpenSSH's misc.c).
func SplitArguments(s string) ([]string, error) { return splitArguments(s, false) }

// splitArguments stops, if comments is set, at a word that begins with # outside quotes.
func splitArguments(s string, comments bool) ([]string, error) {
	var args []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote == 0 && (ch == ' ' || ch == '\t'):
			if inWord {
				args = append(args, word.String())
				word.Reset()
			}
			inWord = false
			continue
		case comments && !inWord && ch == '#':
			return args, nil
		case ch == '\\' && i+1 < len(s) && (strings.IndexByte(`'"\`, s[i+1]) >= 0 || quote == 0 && s[i+1] == ' '):
			i++
			word.WriteByte(s[i])
		case quote == 0 && (ch == '"' || ch == '\''):
			quote = ch
		case quote != 0 && ch == quote:
			quote = 0
		default:
			word.WriteByte(ch)
		}
		inWord = true
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %q is not closed", string(rune(quote)))
	}
	if inWord {
		args = append(args, word.String())
	}
	return args, nil
}

// lineSpace is the white space of ssh_config (WHITESPACE in OpenSSH's misc.c).
const lineSpace = " \t\r\n"

// SplitLine splits a line of ssh_config, or the value of a -o, as ssh does
// (process_config_line_depth in OpenSSH's readconf.c). It returns the keyword, lower case
// and without quotes, the offset at which its arguments begin in the line, and the
// arguments without quotes and without the comment after them. The keyword of an empty
// line or a comment is "". A line that ssh does not accept is an error.
func SplitLine(line string) (keyword string, start int, words []string, err error) {
	line = strings.TrimRight(line, lineSpace+"\f")
	keyword, rest := cutKeyword(line)
	if keyword == "" {
		keyword, rest = cutKeyword(rest)
	}
	if keyword == "" || keyword[0] == '#' {
		return "", 0, nil, nil
	}
	rest = strings.TrimLeft(rest, lineSpace)
	words, err = splitArguments(rest, true)
	return strings.ToLower(keyword), len(line) - len(rest), words, err
}

// cutKeyword cuts a line at the first white space or =, or after the first quoted string
// (strdelim in OpenSSH's misc.c).
func cutKeyword(line string) (keyword, rest string) {
	i := strings.IndexAny(line, lineSpace+`"=`)
	if i < 0 {
		return line, ""
	}
	keyword, rest = line[:i], line[i+1:]
	if line[i] == '"' {
		quoted, after, closed := strings.Cut(rest, `"`)
		if !closed { // ssh ignores the line
			return "", ""
		}
		return keyword + quoted, strings.TrimLeft(after, lineSpace)
	}
	rest = strings.TrimLeft(rest, lineSpace)
	if line[i] != '=' && strings.HasPrefix(rest, "=") {
		rest = strings.TrimLeft(rest[1:], lineSpace)
	}
	return keyword, rest
}
