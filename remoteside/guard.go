package remoteside

import (
	"bytes"

	"gpg-bridge/assuan"
)

// refused are the commands that never reach the agent, with the answer that
// the client gets instead. Each was tried against a real agent:
//
//   - INPUT and OUTPUT take FD=n for a descriptor of the agent's own and close
//     it at the next RESET; SENDFD (libassuan 3, Windows) writes past an array.
//   - The passphrase commands: since 2.4.5 the agent asks for a passphrase with
//     the client's own text, on a restricted connection too, and hands it over.
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

// guardCommand judges a line outside an inquiry: it returns the answer to give
// in the agent's place, or "" when the agent may see the command. What
// libassuan would answer, the client gets (assuan-handler.c, dispatch_command).
func guardCommand(line []byte) (answer string) {
	verb := assuan.Verb(line)
	switch {
	case bytes.IndexByte(line, 0) >= 0: // libassuan would see half the line
		return assuan.ErrSyntax
	case len(verb) == 0:
		return assuan.ErrLeadingSpace
	case bytes.HasPrefix(line, []byte("D ")):
		return assuan.ErrNotImplemented
	case assuan.IsVerb(verb, "D"):
		return assuan.ErrUnknown
	}
	for _, r := range refused {
		if assuan.IsVerb(verb, r.verb) {
			return r.answer
		}
	}
	return ""
}

// guardAnswer judges the line that ends an inquiry's answer: it returns "" for
// END and CAN. For anything else the inquiry is to be cancelled, and the client
// gets the answer returned: a D line with a broken escape would hang the agent,
// and a command is what libassuan calls unexpected (assuan-inquire.c).
func guardAnswer(line []byte) (answer string) {
	switch assuan.AnswerOf(line) {
	case assuan.AnswerEnd, assuan.AnswerCancel:
		return ""
	case assuan.AnswerData:
		return assuan.ErrSyntax
	}
	return assuan.ErrUnexpected
}

// continuesAnswer reports whether a line is a part of an inquiry's answer that
// the agent may see: a D line whose escapes are whole.
func continuesAnswer(line []byte) bool {
	return assuan.AnswerOf(line) == assuan.AnswerData && assuan.EscapesValid(line)
}

// beginsCommand reports whether the bytes of an incomplete line are those of a
// command, not of a comment or an empty line, which get no answer.
func beginsCommand(pending []byte) bool {
	return len(pending) > 0 && pending[0] != '#' && string(pending) != "\r"
}
