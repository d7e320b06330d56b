package sshfwd

import (
	"errors"
	"fmt"
	"strings"
)

// ErrDisconnected says that the user ended the session with ~. (ssh(1), ESCAPE
// CHARACTERS).
var ErrDisconnected = errors.New("the session was ended by its escape sequence")

// suspendKey is Ctrl-Z, as in ~^Z.
const suspendKey = 'Z' - '@'

// An Escape handles the escape sequences of ssh(1) in what the user types: a newline, Char
// and one more character. They are recognised as soon as they are read from Stdin, even if
// the link or the remote takes no input.
type Escape struct {
	Char byte // see EscapeChar
	// Show prints text, whose lines end with CR LF, at once.
	Show func(text string)
	// Suspend, if not nil, stops the program until it is continued (~^Z).
	Suspend func()
	// Verbosity, if not nil, says more or less from now on (~v, ~V), and returns the LogLevel
	// that this is.
	Verbosity func(more bool) (level string)
	// CommandLine says that the configuration allows a command line (~C), which there is not.
	CommandLine bool
}

// EscapeChar reads EscapeChar of ssh_config(5): one character, "^" and a
// letter, or "none". ok is false for "none" and for anything else.
func EscapeChar(value string) (char byte, ok bool) {
	switch {
	case len(value) == 1:
		return value[0], true
	case len(value) == 2 && value[0] == '^':
		return value[1] & 0x1f, true
	}
	return 0, false
}

// help is print_escape_help of OpenSSH's clientloop.c, with the sequences that we have.
func (e *Escape) help() string {
	char := visibleChar(e.Char)
	var b strings.Builder
	fmt.Fprintf(&b, "%s?\r\nSupported escape sequences:\r\n", char)
	for _, line := range [][2]string{
		{".", "terminate connection"},
		{"B", "send a BREAK to the remote system"},
		{"V/v", "decrease/increase verbosity (LogLevel)"},
		{"^Z", "suspend this program"},
		{"#", "list forwarded connections"},
		{"?", "this message"},
	} {
		if (line[0] != "^Z" || e.Suspend != nil) && (line[0] != "V/v" || e.Verbosity != nil) {
			fmt.Fprintf(&b, " %s%-3s - %s\r\n", char, line[0], line[1])
		}
	}
	fmt.Fprintf(&b, " %s%s   - send the escape character by typing it twice\r\n", char, char)
	b.WriteString("(Note that escapes are only recognized immediately after newline.)\r\n")
	return b.String()
}

// instead says what to do instead of an escape sequence that is not there.
func instead(command byte) string {
	switch command {
	case 'C':
		return "give -L, -R and -D when you start it"
	case 'R':
		return "the keys are renewed by themselves"
	case '&':
		return "suspend it, and continue it in the background; or see gpg-bridge up, or -N"
	}
	return ""
}

// visibleChar shows a control character as ^X.
func visibleChar(char byte) string {
	if char < ' ' {
		return "^" + string(rune(char+'@'))
	}
	return string(rune(char))
}

// isCommand reports whether the character after the escape character is for us
// rather than for the remote (process_escapes in clientloop.c).
func isCommand(key byte) bool { return strings.IndexByte(".?BCRVv#&\x1a", key) >= 0 }

// An escapeScanner finds escape sequences in a stream of keys. The start of
// the stream counts as the start of a line.
type escapeScanner struct {
	char     byte
	midLine  bool // the last key was not a newline
	escaping bool // the last key was the escape character
}

// next scans keys up to the end of the first escape sequence. data is what the remote gets
// of them, appended to buf; command is the last character of the sequence, 0 if there is
// none; rest are the keys after it.
func (s *escapeScanner) next(buf, keys []byte) (data []byte, command byte, rest []byte) {
	for i, key := range keys {
		switch {
		case s.escaping && isCommand(key) && key != s.char:
			s.escaping = false
			return buf, key, keys[i+1:]
		case s.escaping:
			s.escaping = false
			if key != s.char {
				buf = append(buf, s.char)
			}
		case !s.midLine && key == s.char:
			s.escaping = true
			continue
		}
		s.midLine = key != '\r' && key != '\n'
		buf = append(buf, key)
	}
	return buf, 0, nil
}
