package assuan

import (
	"bytes"
	"errors"
)

// bufferSize is the size of a LineBuffer at first, in bytes. Four lines of the
// greatest length fit, so a burst of ordinary lines leaves in one write.
const bufferSize = 4096

// BulkSize is the size of a LineBuffer, in bytes, after its peer has filled the
// first one with a single read; only D lines come in such amounts. It is what one
// of OpenSSH's packets carries (CHAN_TCP_PACKET_DEFAULT in channels.h), so that
// such data costs no more packets and system calls than in ssh's own forwarding.
const BulkSize = 32 << 10

// ErrLineTooLong says that a peer sent more than MaxLine bytes without an LF.
// The conversation cannot go on, because nobody knows where the next command
// begins.
var ErrLineTooLong = errors.New("line too long: more than 1000 bytes without a line feed")

// A LineBuffer holds what was read from a peer and not yet taken as lines. It
// grows once, to BulkSize. The zero value is empty and ready to use.
//
// One goroutine fills it: it calls Space, reads into that, and calls Commit. If the
// owner has a lock for all this, the reading needs none: meanwhile any goroutine
// that holds the lock may take lines. Space is the only method that moves bytes, so
// a line stays valid until the next call of Space.
type LineBuffer struct {
	small [bufferSize]byte
	bulk  []byte // used instead of small once a read has filled that
	full  bool   // the last read filled the buffer
	r, w  int    // buf()[r:w] is unread
}

func (b *LineBuffer) buf() []byte {
	if b.bulk != nil {
		return b.bulk
	}
	return b.small[:]
}

// Space returns the free part of the buffer, to be read into. It is empty while
// the buffer is full of lines that nobody has taken.
func (b *LineBuffer) Space() []byte {
	pending := b.Pending()
	if b.full && b.bulk == nil {
		b.bulk = make([]byte, BulkSize)
		b.r = 0
		b.w = copy(b.bulk, pending)
	} else if b.r > 0 {
		b.r = 0
		b.w = copy(b.buf(), pending)
	}
	return b.buf()[b.w:]
}

// Commit says that n bytes were read into the last Space.
func (b *LineBuffer) Commit(n int) {
	b.w += n
	b.full = n > bufferSize/2 && b.w == len(b.buf())
}

// Pending returns the bytes that were read and not taken.
func (b *LineBuffer) Pending() []byte { return b.buf()[b.r:b.w] }

// Next returns the first complete line with its LF, without taking it, or nil
// when there is none. The error is ErrLineTooLong, as soon as that many bytes are
// there.
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
