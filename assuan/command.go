package assuan

import "bytes"

// A Command is a client's line outside an inquiry, split as libassuan splits it
// (assuan-handler.c, dispatch_command). Its parts are slices of the line and
// valid for as long as that is.
type Command struct {
	Line []byte // the whole line, with its LF
	Verb []byte // the command's name; empty if the line begins with white space, which libassuan refuses
	Args []byte // what follows the name and the white space after it, without the line's end
}

// ParseCommand splits a line, with or without its LF. Every line can be split;
// whether the result may reach an agent is for a guard to decide.
func ParseCommand(line []byte) Command {
	verb, rest := cutWord(Trim(line))
	return Command{Line: line, Verb: verb, Args: rest}
}

// cutWord returns what stands before the first space or tab, and what follows
// the white space there.
func cutWord(s []byte) (word, rest []byte) {
	end := 0
	for end < len(s) && !isSpace(s[end]) {
		end++
	}
	next := end
	for next < len(s) && isSpace(s[next]) {
		next++
	}
	return s[:end], s[next:]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// Is reports whether the command has this name, which is given in upper case.
// In the line, ASCII letters may have either case (assuan-handler.c,
// my_strcasecmp).
func (c Command) Is(name string) bool {
	return len(c.Verb) == len(name) && hasFoldPrefix(c.Verb, name)
}

// Keygrip returns the keygrip that the command names, KeygripDigits hex digits of
// either case, or nil if it names none. It is the first word after the options,
// the one that gpg-agent takes (gnupg agent/command.c, parse_keygrip;
// common/server-help.c, skip_options).
func (c Command) Keygrip() []byte {
	word, rest := cutWord(c.Args)
	for bytes.HasPrefix(word, []byte("--")) {
		word, rest = cutWord(rest)
	}
	if len(word) != KeygripDigits {
		return nil
	}
	for _, digit := range word {
		if !IsHex(digit) {
			return nil
		}
	}
	return word
}

// hasFoldPrefix reports whether line begins with the upper-case word.
func hasFoldPrefix(line []byte, word string) bool {
	if len(line) < len(word) {
		return false
	}
	for i := range len(word) {
		c := line[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// An Answer is what a client's line means inside an inquiry.
type Answer uint8

// The answers of assuan-inquire.c (assuan_inquire). The zero value is any other
// line: libassuan drops it and ends the pending command with the error
// "unexpected command".
const (
	AnswerUnexpected Answer = iota
	AnswerData              // D: part of the block
	AnswerEnd               // END: the block is complete
	AnswerCancel            // CAN, CANCEL …: the inquiry is refused
	AnswerNothing           // comment or empty line
)

// AnswerOf tells what a client's line is inside an inquiry. Unlike the agent's
// keywords, the client's may have either case.
func AnswerOf(line []byte) Answer {
	line = Trim(line)
	switch {
	case Ignorable(line):
		return AnswerNothing
	case hasFoldPrefix(line, "D "):
		return AnswerData
	case hasFoldPrefix(line, "END") && (len(line) == 3 || line[3] == ' '):
		return AnswerEnd
	case hasFoldPrefix(line, "CAN"):
		return AnswerCancel
	}
	return AnswerUnexpected
}

// EscapesValid reports whether every % of a D line is followed by two hex
// digits. A % with fewer than two bytes after it makes libassuan loop for ever
// (assuan-inquire.c), and the whole agent with it, because its threads are
// cooperative.
func EscapesValid(line []byte) bool {
	line = Trim(line)
	for {
		i := bytes.IndexByte(line, '%')
		if i < 0 {
			return true
		}
		if len(line) < i+3 || !IsHex(line[i+1]) || !IsHex(line[i+2]) {
			return false
		}
		line = line[i+3:]
	}
}

// IsHex reports whether c is a hexadecimal digit, of either case.
func IsHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
