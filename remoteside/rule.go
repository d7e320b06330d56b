package remoteside

import (
	"bytes"

	"github.com/google/uuid"

	"gpg-bridge/assuan"
)

// A Rule decides what becomes of a command before the agent gets it. A server
// has one list of rules for all its sessions, in Config.Rules. A rule that
// remembers something of a session can forget it when an Observer is told of the
// session's end.
//
// Rules are called in their order, by the goroutines of all sessions
// concurrently and in the middle of a conversation, so a rule must not block.
// The command's slices are valid until it returns. A rule gets what the one
// before it has made of the command.
//
// No rule can permit what the guard refuses: the guard judges a command before
// any rule does, and judges it again when a rule has rewritten it. BYE is not
// put to rules, since a client may always leave; nor are answers to inquiries,
// which are no commands.
type Rule func(session uuid.UUID, c assuan.Command) Ruling

// A Ruling is a rule's decision. The zero value lets the command pass.
type Ruling struct {
	// Answer, if not empty, is the OK or ERR line, with its LF, that the client
	// gets; the agent gets nothing.
	Answer string

	// Rewritten, if not nil, is the line, with its LF, that the agent gets
	// instead of the client's. The client gets assuan.ErrSyntax when it is not
	// one line of at most assuan.MaxLine bytes, or one that the agent would not
	// answer.
	Rewritten []byte
}

// judge puts a command to the guard and to the session's rules. It returns the
// command that the agent is to get, or what the client gets instead.
func (s *session) judge(c assuan.Command) (_ assuan.Command, answer string) {
	if answer := guardCommand(c); answer != "" || len(s.rules) == 0 || c.Is("BYE") {
		return c, answer
	}
	for _, rule := range s.rules {
		ruling := rule(s.id, c)
		if ruling.Answer != "" {
			return c, ruling.Answer
		}
		if ruling.Rewritten == nil {
			continue
		}
		if !isOneCommand(ruling.Rewritten) {
			return c, assuan.ErrSyntax
		}
		c = assuan.ParseCommand(ruling.Rewritten)
		if answer := guardCommand(c); answer != "" {
			return c, answer
		}
	}
	return c, ""
}

// isOneCommand reports whether libassuan takes this for one whole line, and
// answers it.
func isOneCommand(line []byte) bool {
	end := bytes.IndexByte(line, '\n')
	return end >= 0 && end == len(line)-1 && end <= assuan.MaxLine && !assuan.Ignorable(line)
}
