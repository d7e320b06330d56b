package sshfwd

import (
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/terminal"
)

// maxTyped is how much may have been typed and not yet sent, in bytes. x/crypto takes 2 MiB
// before it waits for the remote, so this much more can be pasted into a program that reads
// nothing; then the terminal waits, as it does with ssh.
const maxTyped = 1 << 20

// breakLength is the length of a BREAK, in milliseconds, as for ssh's ~B.
const breakLength = 1000

// A keyQueue holds what the user typed until the link takes it. One goroutine calls put,
// another Read.
type keyQueue struct {
	mu     sync.Mutex
	change sync.Cond // signals a change of the fields below
	keys   []byte
	ended  bool // no key will follow
}

func newKeyQueue() *keyQueue {
	q := &keyQueue{}
	q.change.L = &q.mu
	return q
}

// put appends keys. It waits while the queue is full, and drops them once it has ended.
func (q *keyQueue) put(keys []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.keys) >= maxTyped && !q.ended {
		q.change.Wait()
	}
	if !q.ended {
		q.keys = append(q.keys, keys...)
		q.change.Broadcast()
	}
}

func (q *keyQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.change.Broadcast()
}

// Read waits for keys. It returns io.EOF when the queue is empty and has ended.
func (q *keyQueue) Read(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.keys) == 0 && !q.ended {
		q.change.Wait()
	}
	if len(q.keys) == 0 {
		return 0, io.EOF
	}
	n := copy(p, q.keys)
	q.keys = append(q.keys[:0], q.keys[n:]...)
	q.change.Broadcast()
	return n, nil
}

// readKeys reads stdin into the queue and executes escape sequences. It waits only for
// stdin, and for a queue that is full.
func (s *session) readKeys(stdin io.Reader, escape *Escape, queue *keyQueue) {
	defer queue.end()
	scanner := &escapeScanner{char: escape.Char}
	in, out := make([]byte, sessionBuffer), make([]byte, 0, sessionBuffer)
	for !s.isDone() {
		n, err := stdin.Read(in)
		for keys := in[:n]; len(keys) > 0 && !s.isDone(); {
			var data []byte
			var command byte
			data, command, keys = scanner.next(out[:0], keys)
			if len(data) > 0 {
				queue.put(data)
			}
			s.execute(escape, command)
		}
		if err != nil {
			return
		}
	}
}

// execute executes the command of an escape sequence, if it is not 0.
func (s *session) execute(escape *Escape, command byte) {
	char := visibleChar(escape.Char)
	switch command {
	case 0:
	case '.':
		s.disconnect()
	case '?':
		escape.Show(escape.help())
	case 'B':
		escape.Show(char + "B\r\n")
		select {
		case s.breaks <- struct{}{}:
		default: // one is waiting to be sent
		}
	case suspendKey:
		if escape.Suspend != nil {
			escape.Show(char + "^Z [suspended]\r\n")
			s.stdout.hold(func() { s.stderr.hold(escape.Suspend) })
			return
		}
		escape.refuse(command)
	case '#':
		escape.Show(char + "#\r\n" + s.client.conns.text())
	case 'v', 'V':
		if escape.Verbosity != nil {
			escape.Show(fmt.Sprintf("%s%c [LogLevel %s]\r\n", char, command, escape.Verbosity(command == 'v')))
			return
		}
		escape.refuse(command)
	case 'C':
		if !escape.CommandLine {
			escape.Show("commandline disabled\r\n")
			return
		}
		escape.refuse(command)
	default:
		escape.refuse(command)
	}
}

// refuse says that an escape sequence of ssh's is not there.
func (e *Escape) refuse(command byte) {
	words := "not supported"
	if other := instead(command); other != "" {
		words += ": " + other
	}
	e.Show(fmt.Sprintf("%s%s [%s]\r\n", visibleChar(e.Char), visibleChar(command), words))
}

// sendChanges sends the terminal's sizes (RFC 4254 section 6.7) and BREAKs (RFC 4335).
func (s *session) sendChanges(sizes <-chan terminal.WindowSize) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				sizes = nil
				continue
			}
			_, _ = s.ch.SendRequest("window-change", false, ssh.Marshal(size))
		case <-s.breaks:
			_, _ = s.ch.SendRequest("break", false, ssh.Marshal(struct{ Length uint32 }{breakLength}))
		case <-s.done:
			return
		}
	}
}
