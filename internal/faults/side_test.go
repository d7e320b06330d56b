//go:build unix

package faults

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// patience bounds the wait for something that must come.
	patience = 20 * time.Second

	// aSecond is how soon a side must be told: a second, and half a second for the test
	// itself. All limits are counted in ticks, so that the time in which the machine does
	// not run this test does not count.
	aSecond = 1500 * time.Millisecond
	tick    = 10 * time.Millisecond

	// aWhile is how long a session is watched that must go on waiting: longer than its
	// patience with a client that has left.
	aWhile = 1200 * time.Millisecond

	// tail is how much of flowing data is kept.
	tail = 4096
)

// conn is one end of a connection: a socket, or an SSH channel.
type conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// A side is the test's end of a connection: the client or the agent. It collects what it
// reads, unless it is deaf.
type side struct {
	conn   conn
	reader sync.WaitGroup // close waits

	mu      sync.Mutex
	changed sync.Cond
	heard   []byte
	flowing bool // only the tail of heard is kept
	total   int  // bytes that were heard
	deaf    bool // reads nothing
	err     error
}

func newSide(c conn) *side {
	s := &side{conn: c}
	s.changed.L = &s.mu
	s.reader.Go(s.hear)
	return s
}

func (s *side) hear() {
	piece := make([]byte, 32<<10)
	for s.listens() {
		n, err := s.conn.Read(piece)
		s.mu.Lock()
		s.heard = append(s.heard, piece[:n]...)
		if s.total += n; s.flowing && len(s.heard) > tail {
			s.heard = append(s.heard[:0], s.heard[len(s.heard)-tail:]...)
		}
		s.err = err
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// listens waits while the side is deaf, and reports whether it goes on reading.
func (s *side) listens() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.deaf && s.err == nil {
		s.changed.Wait()
	}
	return s.err == nil
}

func (s *side) setDeaf(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = deaf
	s.changed.Broadcast()
}

// close closes the side, and ends its reading.
func (s *side) close() {
	_ = s.conn.Close()
	s.mu.Lock()
	if s.deaf {
		s.deaf, s.err = false, io.ErrClosedPipe
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	s.reader.Wait()
}

func (s *side) send(text string) error {
	_, err := io.WriteString(s.conn, text)
	return err
}

// await waits for a condition on what was read; mu is held.
func (s *side) await(limit time.Duration, condition func() bool) bool {
	left := limit / tick
	var clock *time.Timer
	clock = time.AfterFunc(tick, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if left--; left > 0 {
			clock.Reset(tick)
		}
		s.changed.Broadcast()
	})
	defer clock.Stop()
	for !condition() {
		if left <= 0 {
			return false
		}
		s.changed.Wait()
	}
	return true
}

// within reports whether a channel is closed within a limit.
func within(limit time.Duration, closed <-chan struct{}) bool {
	for range limit / tick {
		select {
		case <-closed:
			return true
		case <-time.After(tick):
		}
	}
	return false
}

// receive requires that want comes next.
func (s *side) receive(want string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await(patience, func() bool { return len(s.heard) >= len(want) || s.err != nil })
	if !bytes.HasPrefix(s.heard, []byte(want)) {
		return fmt.Errorf("waited for %q, heard %.200q, %v", want, s.heard, s.err)
	}
	s.heard = s.heard[len(want):]
	return nil
}

// receiveUntil takes everything up to end, and returns how many bytes the side has read
// in all.
func (s *side) receiveUntil(end string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flowing = true
	if !s.await(patience, func() bool { return bytes.HasSuffix(s.heard, []byte(end)) || s.err != nil }) || !bytes.HasSuffix(s.heard, []byte(end)) {
		return s.total, fmt.Errorf("waited for %q, heard %d bytes, %.200q, %v", end, s.total, s.heard, s.err)
	}
	s.heard, s.flowing = nil, false
	return s.total, nil
}

// ended requires that the connection ends, in whatever way. A deaf side reads again, since
// it could not notice the end otherwise.
func (s *side) ended(limit time.Duration) error {
	s.setDeaf(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flowing = true
	if !s.await(limit, func() bool { return s.err != nil }) {
		return fmt.Errorf("not closed in %v; heard %.200q", limit, s.heard)
	}
	return nil
}

// A pour sends the same text over and over until it is stopped or the connection ends, and
// counts how often.
type pour struct {
	stop    chan struct{}
	once    sync.Once
	running sync.WaitGroup

	mu    sync.Mutex
	times int
}

func (s *side) pour(text string) *pour {
	p := &pour{stop: make(chan struct{})}
	p.running.Go(func() {
		for {
			select {
			case <-p.stop:
				return
			default:
			}
			if s.send(text) != nil {
				return
			}
			p.mu.Lock()
			p.times++
			p.mu.Unlock()
		}
	})
	return p
}

func (p *pour) sent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.times
}

// stuck waits until nothing moves any more: in 30 looks, which a machine with other things to
// do makes later, not fewer.
func (p *pour) stuck() error {
	last, still := p.sent(), 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(tick) {
		if now := p.sent(); now != last {
			last, still = now, 0
		}
		if still++; still > 30 {
			return nil
		}
	}
	return fmt.Errorf("all of %d pieces was taken", p.sent())
}

func (p *pour) end() {
	p.once.Do(func() { close(p.stop) })
	p.running.Wait()
}
