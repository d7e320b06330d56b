package agentside

import (
	"bytes"
	"errors"
	"io"

	"gpg-bridge/assuan"
)

// SendCommands sends a block, which is one command or the whole answer to an
// inquiry, each line with its LF. It returns the agent's whole response: the lines
// up to and including the OK, ERR or INQUIRE that ends it. There is no timeout.
// Only one goroutine may call it, and no other may call ReadLine. If the response
// is longer than 1 MiB, the session is closed. A block that the agent would not
// answer, because it is empty, has no LF at its end or ends with a comment, is not
// sent, and is an error.
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

// Disconnect sends BYE, waits for the answer and closes. It is for a session that
// is Ready; Close is for every other.
func (s *Session) Disconnect() error {
	_, err := s.SendCommands([]byte("BYE\n"))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, s.Close())
}

// answerable reports whether the agent would answer the last line of a block.
func answerable(block []byte) bool {
	body, complete := bytes.CutSuffix(block, []byte("\n"))
	last := body[bytes.LastIndexByte(body, '\n')+1:]
	return complete && !assuan.Ignorable(last) && assuan.AnswerOf(last) != assuan.AnswerData
}
