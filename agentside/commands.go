package agentside

import (
	"bytes"
	"errors"
	"io"

	"gpg-bridge/assuan"
)

// SendCommands sends a block, one command or the whole answer to an inquiry,
// each line with its LF, and returns the agent's whole response: the lines up
// to and with the OK, ERR or INQUIRE that ends it. There is no timeout. Blocks
// are sent one after the other by one goroutine, which then does all reading.
// The response is bounded by 1 MiB; beyond that the session is closed. A block
// that the agent would not answer, because it is empty, has no LF at its end or
// ends in a comment, is an error and is not sent.
func (s *Session) SendCommands(block []byte) (response []byte, err error) {
	if !answerable(block) {
		return nil, errNotACommand
	}
	for line := range bytes.Lines(block) {
		if err := s.WriteLine(line); err != nil {
			return nil, err
		}
	}
	for {
		line, _, err := s.ReadLine()
		if err != nil {
			return nil, err
		}
		response = append(response, line...)
		if assuan.KindOf(line).Final() {
			return response, nil
		}
		if len(response) > maxResponse {
			return nil, errors.Join(errResponseTooLong, s.Close())
		}
	}
}

// Disconnect says BYE as any other command and closes. It is for a session
// that is Ready; Close is for every other.
func (s *Session) Disconnect() error {
	_, err := s.SendCommands([]byte("BYE\n"))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, s.Close())
}

// answerable reports whether the agent answers the last line of a block.
func answerable(block []byte) bool {
	body, complete := bytes.CutSuffix(block, []byte("\n"))
	last := body[bytes.LastIndexByte(body, '\n')+1:]
	return complete && !assuan.Ignorable(last) && assuan.AnswerOf(last) != assuan.AnswerData
}
