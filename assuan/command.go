package assuan

import "bytes"

// Verb returns the command's name: what stands before the first space or tab
// (assuan-handler.c, dispatch_command). It is empty when the line begins with
// white space, which libassuan refuses. Names are compared without regard to
// case; see IsVerb.
func Verb(line []byte) []byte {
	line = Trim(line)
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		return line[:i]
	}
	return line
}

// IsVerb reports whether verb is the command name, which is given in upper
// case. Only ASCII letters have a case (assuan-handler.c, my_strcasecmp).
func IsVerb(verb []byte, name string) bool {
	return len(verb) == len(name) && hasFoldPrefix(verb, name)
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

// An Answer is what a client's line means while the agent inquires.
type Answer uint8

// The answers of assuan-inquire.c (assuan_inquire). The zero value is
// everything else: libassuan calls it an unexpected command, swallows the line
// and ends the pending command.
const (
	AnswerUnexpected Answer = iota
	AnswerData              // D: part of the block
	AnswerEnd               // END: the block is complete
	AnswerCancel            // CAN, CANCEL …: the inquiry is refused
	AnswerNothing           // comment or empty line
)

// AnswerOf tells what a line of the client's is inside an inquiry. Unlike the
// agent's keywords these have no case.
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
// (assuan-inquire.c), and with it the whole agent, whose threads are
// cooperative.
func EscapesValid(line []byte) bool {
	line = Trim(line)
	for {
		i := bytes.IndexByte(line, '%')
		if i < 0 {
			return true
		}
		if len(line) < i+3 || !isHex(line[i+1]) || !isHex(line[i+2]) {
			return false
		}
		line = line[i+3:]
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
