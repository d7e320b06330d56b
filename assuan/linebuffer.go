package assuan

import (
	"bytes"
	"errors"
)

// bufferSize bounds what one direction of a session holds. Four lines of the
// greatest length fit, so a burst of ordinary lines leaves as one write.
const bufferSize = 4096

// ErrLineTooLong says that a peer sent more than MaxLine bytes without an LF.
// The conversation cannot go on: where the next command begins is unknown.
var ErrLineTooLong = errors.New("line too long: more than 1000 bytes without a line feed")

// A LineBuffer holds what was read from a peer and not yet taken as lines. It
// never grows. The zero value is empty and ready.
//
// One goroutine fills it: it asks for Space, reads into that without holding
// the owner's lock, and then calls Commit. Lines may be taken meanwhile by any
// goroutine that holds the lock: Space is the only method that moves bytes, so
// a line stays valid until the filling goroutine calls Space again.
type LineBuffer struct {
	buf  [bufferSize]byte
	r, w int // buf[r:w] is unread
}

// Space returns the free room to read into. It is empty while the buffer is
// full of lines that nobody has taken.
func (b *LineBuffer) Space() []byte {
	if b.r > 0 {
		b.w = copy(b.buf[:], b.buf[b.r:b.w])
		b.r = 0
	}
	return b.buf[b.w:]
}

// Commit adds the first n bytes of the last Space.
func (b *LineBuffer) Commit(n int) { b.w += n }

// Pending returns the bytes that are there and not taken.
func (b *LineBuffer) Pending() []byte { return b.buf[b.r:b.w] }

// Next returns the first complete line with its LF, without taking it, or nil
// when there is none. The error is ErrLineTooLong, as soon as it is certain.
func (b *LineBuffer) Next() ([]byte, error) {
	pending := b.Pending()
	i := bytes.IndexByte(pending, '\n')
	switch {
	case i > MaxLine, i < 0 && len(pending) > MaxLine:
		return nil, ErrLineTooLong
	case i < 0:
		return nil, nil
	}
	return pending[:i+1], nil
}

// Take removes a line that Next returned.
func (b *LineBuffer) Take(line []byte) { b.r += len(line) }

// More reports whether Next would return a line.
func (b *LineBuffer) More() bool {
	line, _ := b.Next()
	return line != nil
}
