package agentside

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"gpg-bridge/assuan"
)

// writeTimeout is how long the agent may take nothing of a write that is too large
// for the socket's buffer.
const writeTimeout = 5 * time.Second

// writeBuffer is the size, in bytes, of the buffer for what is sent to the agent.
// The answer to an inquiry is collected in it and leaves in few writes.
const writeBuffer = 4096

// write sends one line. A D line waits in the buffer for the end of its block.
// Any other line is one that the agent answers, so it is flushed and reported.
func (s *Session) write(line []byte) event {
	if assuan.AnswerOf(line) == assuan.AnswerData {
		return s.written(s.buffer(line), evNone)
	}
	return s.written(s.flush(line), evAgentWriteOK)
}

// written turns the result of a write into an event.
func (s *Session) written(err error, success event) event {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return s.fail(errTakesNothing)
	case err != nil:
		return s.fail(fmt.Errorf("write to the agent: %w", err))
	}
	return success
}

// flush writes a line, and all that was buffered before it.
//
// A write that could block has a deadline. That of a command cannot: the agent has
// taken everything before it, so there is room in the socket even when the agent is
// stopped. That of a block of D lines can, if the block is larger than the buffer;
// and while it blocks, nobody could tell the client, or notice that it leaves.
func (s *Session) flush(line []byte) error {
	if s.bulky {
		if err := s.setWriteDeadline(); err != nil {
			return err
		}
	}
	if err := s.buffer(line); err != nil {
		return err
	}
	if err := s.out.Flush(); err != nil || !s.bulky {
		return err
	}
	s.bulky = false
	return s.conn.SetWriteDeadline(time.Time{})
}

// buffer adds a line to the buffer. If it does not fit, what is in the buffer is
// written.
func (s *Session) buffer(line []byte) error {
	if s.out.Available() < len(line) {
		s.bulky = true
		if err := s.setWriteDeadline(); err != nil {
			return err
		}
	}
	if err := s.makeRoom(line); err != nil {
		return err
	}
	_, err := s.out.Write(line)
	return err
}

func (s *Session) setWriteDeadline() error {
	return s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// makeRoom replaces the buffer with a larger one if the line does not fit, so that
// a block leaves in fewer writes.
func (s *Session) makeRoom(line []byte) error {
	if s.out.Available() >= len(line) || s.out.Size() >= assuan.BulkSize {
		return nil
	}
	err := s.out.Flush()
	s.out = bufio.NewWriterSize(bulkWriter{s.conn}, assuan.BulkSize)
	return err
}

// A bulkWriter makes writes so large that a working agent may need longer than
// writeTimeout for one: whenever the agent has taken a part, the time starts again.
type bulkWriter struct{ conn net.Conn }

func (w bulkWriter) Write(p []byte) (written int, err error) {
	for {
		n, err := w.conn.Write(p[written:])
		written += n
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
		if err := w.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return written, err
		}
	}
}
