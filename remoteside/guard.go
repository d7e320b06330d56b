package remoteside

import (
	"bytes"

	"gpg-bridge/assuan"
)

// refused lists the commands that never reach the agent, with the answer that
// the client gets instead. Each was tried against a real agent:
//
//   - INPUT FD=n and OUTPUT FD=n make the agent close its own descriptor n at the
//     next RESET; SENDFD (libassuan 3, Windows) makes it write past an array.
//   - With the passphrase commands, agents since 2.4.5 ask the user for a passphrase
//     with the client's text, and give it to the client, even on a restricted connection.
//   - END and CAN mean something only inside an inquiry.
var refused = [...]struct{ verb, answer string }{
	{"INPUT", assuan.ErrForbidden},
	{"OUTPUT", assuan.ErrForbidden},
	{"SENDFD", assuan.ErrUnknown},
	{"RECVFD", assuan.ErrUnknown},
	{"PRESET_PASSPHRASE", assuan.ErrForbidden},
	{"CLEAR_PASSPHRASE", assuan.ErrForbidden},
	{"GET_PASSPHRASE", assuan.ErrForbidden},
	{"END", assuan.ErrNotImplemented},
	{"CAN", assuan.ErrUnknown},
}

// guardCommand judges a command: it returns "" if the agent may get it, or else the
// answer that the client gets. That is the answer that libassuan would give, if it
// would refuse the command, too (assuan-handler.c, dispatch_command).
func guardCommand(c assuan.Command) (answer string) {
	switch {
	case bytes.IndexByte(c.Line, 0) >= 0: // libassuan would take the line to end here
		return assuan.ErrSyntax
	case len(c.Verb) == 0:
		return assuan.ErrLeadingSpace
	case bytes.HasPrefix(c.Line, []byte("D ")):
		return assuan.ErrNotImplemented
	case c.Is("D"):
		return assuan.ErrUnknown
	}
	for _, r := range refused {
		if c.Is(r.verb) {
			return r.answer
		}
	}
	return ""
}

// guardAnswer judges the line that ends the answer to an inquiry: it returns "" for
// END and CAN. For any other line the inquiry must be cancelled, and the client
// gets what guardAnswer returns: a D line with an invalid escape would hang the
// agent, and a command is unexpected, as in libassuan (assuan-inquire.c).
func guardAnswer(end assuan.Answer) (answer string) {
	switch end {
	case assuan.AnswerEnd, assuan.AnswerCancel:
		return ""
	case assuan.AnswerData:
		return assuan.ErrSyntax
	}
	return assuan.ErrUnexpected
}

// continuesAnswer reports whether a line is a part of the answer to an inquiry, and
// the agent may get it: a D line whose escapes are valid.
func continuesAnswer(in input) bool {
	return in.answer == assuan.AnswerData && assuan.EscapesValid(in.line)
}

// beginsCommand reports whether an incomplete line is the beginning of a command,
// rather than of a comment or an empty line, which get no answer.
func beginsCommand(pending []byte) bool {
	return len(pending) > 0 && pending[0] != '#' && string(pending) != "\r"
}
