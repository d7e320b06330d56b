package ui

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"unicode/utf8"
)

// A question is asked on the terminal and answered by one line.
type question struct {
	prompt string
	shown  bool // the answer is shown while it is typed
}

// maxTyped bounds an answer, in bytes, whether it is typed or an askpass program's, as ssh's
// buffers do (read_passphrase and ssh_askpass in OpenSSH's readpass.c).
const maxTyped = 1023

// A typedLine is the part of the answer that was typed so far. It is allocated only once, so
// that no copy of a secret stays behind.
type typedLine struct {
	mu   sync.Mutex
	line []byte
}

func newTypedLine() *typedLine { return &typedLine{line: make([]byte, 0, maxTyped)} }

var errTypedTooMuch = errors.New("the answer is too long")

// errSuspend says that the user typed the key that stops the program.
var errSuspend = errors.New("suspend")

// editKeys are the keys of the user's terminal that edit a line, as stty(1) names them, for a
// line that the system does not edit.
type editKeys struct {
	erase, kill, word, quote, end, suspend byte

	none  byte // the value of a key that is not set
	wide  bool // characters may have several bytes, in UTF-8
	edits bool
}

// read reads up to the end of a line, byte by byte, since what follows is not ours. The end of
// input ends a line, too: Ctrl-D alone is an empty answer, and after part of a line it takes a
// second one, as with ssh. The key that stops the program is errSuspend.
func (l *typedLine) read(in io.Reader, keys editKeys) error {
	var b [1]byte
	quoted, ending := false, false
	for {
		n, err := in.Read(b[:])
		switch {
		case n == 0 && errors.Is(err, io.EOF):
			return nil
		case n == 0 && err != nil:
			return err
		case n == 0:
			continue
		case b[0] == '\n' && !quoted:
			return nil
		}
		wasQuoted, wasEnding := quoted, ending
		quoted, ending = false, false
		switch is := func(key byte) bool { return keys.edits && !wasQuoted && b[0] == key && key != keys.none }; {
		case is(keys.suspend):
			return errSuspend
		case is(keys.end):
			if wasEnding || l.isEmpty() {
				return nil
			}
			ending = true
		case is(keys.quote):
			quoted = true
		case is(keys.erase):
			l.erase(keys.wide)
		case is(keys.kill):
			l.forget()
		case is(keys.word):
			l.eraseWord()
		default:
			if err := l.add(b[0]); err != nil {
				return err
			}
		}
	}
}

func (l *typedLine) add(b byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) == maxTyped {
		return errTypedTooMuch
	}
	l.line = append(l.line, b)
	return nil
}

func (l *typedLine) isEmpty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.line) == 0
}

// erase drops the last character.
func (l *typedLine) erase(wide bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.line) - 1
	for wide && n > 0 && !utf8.RuneStart(l.line[n]) {
		n--
	}
	l.cutLocked(n)
}

// eraseWord drops the last word and the spaces after it.
func (l *typedLine) eraseWord() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutLocked(bytes.LastIndexAny(bytes.TrimRight(l.line, " \t"), " \t") + 1)
}

func (l *typedLine) cutLocked(n int) {
	n = max(n, 0)
	clear(l.line[n:])
	l.line = l.line[:n]
}

// answer returns the line without its end. The reading must have ended.
func (l *typedLine) answer() []byte { return bytes.TrimSuffix(l.line, []byte("\r")) }

// forget drops what was typed so far.
func (l *typedLine) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutLocked(0)
}
