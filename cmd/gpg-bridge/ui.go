package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"gpg-bridge/sshfwd"
)

// Everything that gpg-bridge says to its user is said in this file, except the
// help, which cobra prints.
//
// Messages go to stderr, begin with "gpg-bridge: " in lower case and have no
// period; a second line says what to do. What came from a remote is escaped by
// whoever received it. stdout holds only what the remote sent or what was asked
// for. When all is well nothing is said, except by -N.
//
// Questions are asked on the terminal itself, never on stdin.

// ui is the user: what they see, and what they answer. Its methods may be
// called from any goroutine.
type ui struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	mu    sync.Mutex // one message, or one question, at a time
	quiet bool
	raw   bool // the terminal is in raw mode: an LF alone is a stair
}

func newUI(stdin io.Reader, stdout, stderr io.Writer) *ui {
	return &ui{stdin: stdin, stdout: stdout, stderr: stderr}
}

// setQuiet is ssh's -q: warnings are dropped, errors are not.
func (u *ui) setQuiet(quiet bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.quiet = quiet
}

// setRaw tells whether the terminal is in raw mode.
func (u *ui) setRaw(raw bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.raw = raw
}

// say prints one message, made one line, with its hint.
func (u *ui) say(text, hint string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sayLocked(text, hint)
}

func (u *ui) sayLocked(text, hint string) {
	message := "gpg-bridge: " + oneLine(text) + "\n"
	if hint != "" {
		message += "gpg-bridge: " + oneLine(hint) + "\n"
	}
	if u.raw {
		message = strings.ReplaceAll(message, "\n", "\r\n")
	}
	_, _ = io.WriteString(u.stderr, message)
}

// maxLine bounds a line of a message, in bytes.
const maxLine = 2048

// oneLine is the last look at a text before a terminal gets it: what receives
// something from a remote escapes and bounds it, but an error of a library's
// may carry it further than anybody thought of.
func oneLine(text string) string {
	text = strings.ReplaceAll(text, "\n", "; ") // errors.Join makes lines
	if len(text) > maxLine {
		text = text[:maxLine] + "…"
	}
	return sshfwd.Printable(text)
}

// warn reports an error that does not end the program.
func (u *ui) warn(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.quiet {
		u.sayLocked("warning: "+err.Error(), hintOf(err))
	}
}

// tell says what happens, where that is all there is to see.
func (u *ui) tell(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.quiet {
		u.sayLocked(text, "")
	}
}

// print prints on stdout what was asked for, of several lines maybe.
func (u *ui) print(text string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err := io.WriteString(u.stdout, sshfwd.Printable(text))
	return err
}

// control sends the terminal that is stdout a control sequence of ours.
func (u *ui) control(sequence string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, _ = io.WriteString(u.stdout, sequence)
}

// Notice passes on a text of the remote's, such as a banner, on its own lines.
func (u *ui) Notice(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.quiet {
		_, _ = io.WriteString(u.stderr, sshfwd.Printable(text))
	}
}

// hintOf returns what an error says is to be done, or "".
func hintOf(err error) string {
	var hinted interface {
		error
		Hint() string
	}
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// log returns the program's log: on stderr with -v, else nothing.
func (u *ui) log(verbosity int) *slog.Logger {
	if verbosity == 0 {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(logWriter{u}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// logWriter writes the log's lines between the messages, not into them.
type logWriter struct{ ui *ui }

func (w logWriter) Write(line []byte) (int, error) {
	w.ui.say(strings.TrimSuffix(string(line), "\n"), "")
	return len(line), nil
}

// An exitError carries an exit code, and an error to print unless it is nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d: %v", e.code, e.err) }
func (e *exitError) Unwrap() error { return e.err }

// A usageError is a command line that cannot be understood.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
func (e *usageError) Hint() string  { return "see " + e.command + " --help" }

// exitCode prints the error a command ended with, and turns it into a code.
func (u *ui) exitCode(err error) int {
	var exit *exitError
	var usage *usageError
	code := 1
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		code, err = exit.code, exit.err
	case errors.As(err, &usage):
		code = 2
	}
	if err != nil {
		u.say(err.Error(), hintOf(err))
	}
	return code
}

// errNoTerminal says that a question cannot be asked.
var errNoTerminal = errors.New("there is no terminal to ask on")

// AskSecret asks for a passphrase or password, which is not shown.
func (u *ui) AskSecret(ctx context.Context, prompt string) ([]byte, error) {
	return u.onTerminal(ctx, prompt, func(tty terminal) ([]byte, error) {
		secret, err := term.ReadPassword(int(tty.in.Fd()))
		_, _ = io.WriteString(tty.out, "\n")
		return secret, err
	})
}

// Ask asks for a line, without its end.
func (u *ui) Ask(ctx context.Context, prompt string) (string, error) {
	answer, err := u.onTerminal(ctx, prompt, func(tty terminal) ([]byte, error) { return readLine(tty.in) })
	return string(answer), err
}

// onTerminal shows a prompt and runs read. When ctx ends first the terminal is
// put back as it was; the goroutine that is stuck in its read then ends with
// the process.
func (u *ui) onTerminal(ctx context.Context, prompt string, read func(terminal) ([]byte, error)) ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	tty, err := openTerminal()
	if err != nil {
		return nil, errNoTerminal
	}
	before, err := term.GetState(int(tty.in.Fd()))
	if err != nil {
		return nil, errNoTerminal
	}
	_, _ = io.WriteString(tty.out, sshfwd.Printable(prompt))
	type reading struct {
		answer []byte
		err    error
	}
	done := make(chan reading, 1)
	go func() {
		answer, err := read(tty)
		done <- reading{answer, err}
	}()
	select {
	case r := <-done:
		tty.close()
		return r.answer, r.err
	case <-ctx.Done():
		_ = term.Restore(int(tty.in.Fd()), before)
		_, _ = io.WriteString(tty.out, "\n")
		return nil, context.Cause(ctx)
	}
}

// readLine reads up to an LF, byte by byte: what follows is not ours.
func readLine(in *os.File) ([]byte, error) {
	var line []byte
	var b [1]byte
	for len(line) < 1024 {
		n, err := in.Read(b[:])
		switch {
		case n == 1 && b[0] == '\n':
			return []byte(strings.TrimSuffix(string(line), "\r")), nil
		case n == 1:
			line = append(line, b[0])
		case err != nil:
			return nil, err
		}
	}
	return nil, errors.New("the answer is too long")
}
