package agentside

import (
	"bytes"

	"gpg-bridge/assuan"
)

const (
	cmdRestricted    = "GETINFO restricted\n"
	cmdPretendRemote = "OPTION pretend-request-origin=remote\n"
)

// prove makes sure that the agent itself treats this connection as restricted:
// only then is its answer to GETINFO restricted OK (gnupg agent/command.c; otherwise
// ERR 67109120 False, or another ERR before 2.2.17). A connection to the main socket
// can be made a restricted one: OPTION pretend-request-origin=remote restricts it for
// good, since RESET does not undo it (2.2.6 and later), and the agent is asked again.
func prove(s *Session) error {
	for _, command := range []string{cmdRestricted, cmdPretendRemote, cmdRestricted} {
		ok, err := s.says(command)
		if err != nil {
			return err
		}
		if ok && command == cmdRestricted {
			return nil
		}
	}
	return ErrUnrestricted
}

// says sends a command and reports whether the answer is OK.
func (s *Session) says(command string) (bool, error) {
	response, err := s.SendCommands([]byte(command))
	if err != nil {
		return false, err
	}
	trimmed := bytes.TrimSuffix(response, []byte("\n"))
	last := response[bytes.LastIndexByte(trimmed, '\n')+1:]
	return assuan.KindOf(last) == assuan.KindOK, nil
}
