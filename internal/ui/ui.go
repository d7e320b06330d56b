package ui

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/term"

	"gpg-bridge/internal/usertext"
)

// Everything that gpg-bridge says to its user is said in this file, except the
// help, which cobra prints.
//
// Messages go to stderr, begin with "gpg-bridge: " in lower case and have no
// period; a second line says what to do. Text from a remote is escaped by
// whoever received it. stdout gets only what the remote sent or what was asked
// for. When all is well nothing is said, except by -N. What ssh says itself is said in its
// words and at its level of LogLevel, without the prefix: programs that run ssh look for it.
//
// Questions are asked on the terminal itself, never on stdin.

// UI is the user: what they see, and what they answer. Its methods may be
// called from any goroutine.
type UI struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	level atomic.Int32 // a usertext.Level: messages of a greater one are not shown

	mu   sync.Mutex // one message, or one question, at a time
	mute bool       // no warnings
	raw  bool       // the terminal is in raw mode, in which an LF needs a CR
	turn func()     // returns when nobody else has the terminal; nil if nobody ever has
	log  io.Writer  // where messages go instead of Stderr, nil for there

	prompt atomic.Pointer[func() bool] // cancels another program's prompt; nil: there is never one
}

// New returns the user with these standard streams.
func New(stdin io.Reader, stdout, stderr io.Writer) *UI {
	u := &UI{Stdin: stdin, Stdout: stdout, Stderr: stderr}
	u.SetLevel(usertext.Info)
	return u
}

// Redirect sends messages elsewhere. It is called before there are any.
func (u *UI) Redirect(messages io.Writer) { u.Stderr = messages }

// LogTo sends messages and the log elsewhere, as ssh's -E and -y; what a program on the host or
// the session itself shows stays on stderr. It is called before there are any messages, and log
// is for the rest of the process.
func (u *UI) LogTo(log io.Writer) { u.log = log }

// SetLevel sets up to which level messages are shown. It is Info until ssh -G has told what
// -q, -v and LogLevel come to.
func (u *UI) SetLevel(level usertext.Level) { u.level.Store(int32(level)) }

// Level is the level up to which messages are shown.
func (u *UI) Level() usertext.Level { return usertext.Level(u.level.Load()) }

// OmitWarnings has errors that end the program shown, and no others.
func (u *UI) OmitWarnings() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mute = true
}

// SetRaw tells whether the terminal is in raw mode.
func (u *UI) SetRaw(raw bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.raw = raw
}

// SetTurn sets a function for which every message waits.
func (u *UI) SetTurn(turn func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turn = turn
}

// SetPrompt sets the function that cancels another program's prompt on the terminal, and
// reports whether there is one.
func (u *UI) SetPrompt(cancel func() bool) { u.prompt.Store(&cancel) }

// CancelPrompt cancels another program's prompt on the terminal, and reports whether there is
// one. It does not wait for messages that are being written.
func (u *UI) CancelPrompt() bool {
	cancel := u.prompt.Load()
	return cancel != nil && (*cancel)()
}

// lock begins a message. mu is not held while the message waits for its turn.
func (u *UI) lock() {
	u.mu.Lock()
	if turn := u.turn; turn != nil {
		u.mu.Unlock()
		turn()
		u.mu.Lock()
	}
}

// Say prints one message, made one line, with its hint.
func (u *UI) Say(text, hint string) {
	u.lock()
	defer u.mu.Unlock()
	u.sayLocked(text, hint)
}

func (u *UI) sayLocked(text, hint string) {
	message := "gpg-bridge: " + OneLine(text) + "\n"
	if hint != "" {
		message += "gpg-bridge: " + OneLine(hint) + "\n"
	}
	if u.raw {
		message = strings.ReplaceAll(message, "\n", "\r\n")
	}
	u.writeLocked(message)
}

// writeLocked writes a message.
func (u *UI) writeLocked(message string) {
	if u.log == nil {
		_, _ = io.WriteString(u.Stderr, message)
		return
	}
	_, _ = io.WriteString(u.log, strings.ReplaceAll(message, "\r\n", "\n"))
}

// maxLine bounds a line of a message, in bytes.
const maxLine = 2048

// OneLine makes a text fit for a line on a terminal. Whoever receives text from a remote escapes
// and bounds it, but a library's error may carry such text here in unexpected ways.
func OneLine(text string) string {
	text = strings.ReplaceAll(text, "\n", "; ") // errors.Join puts each error on a line
	if len(text) > maxLine {
		text = text[:maxLine] + "…"
	}
	return usertext.Printable(text)
}

// Warn reports an error that does not end the program, at level Error: what the user has
// asked for is not there. If ssh has words for it, these are shown, at ssh's levels.
func (u *UI) Warn(err error) {
	u.lock()
	defer u.mu.Unlock()
	if u.mute {
		return
	}
	words, complete := usertext.SSHSays(err)
	shown := u.showAllLocked(words)
	switch {
	case complete && shown:
		u.hintLocked(usertext.Info, err)
	case complete && len(words) > 0: // which ssh does not say at this level
	case u.shows(usertext.Error):
		u.sayLocked("warning: "+err.Error(), usertext.Hint(err))
	}
}

// Fail reports the error that ends the program. ssh's own words for it come first, if it has
// any, and ours behind them from level Error on.
func (u *UI) Fail(err error) {
	u.lock()
	defer u.mu.Unlock()
	words, complete := usertext.SSHSays(err)
	shown := u.showAllLocked(words)
	switch {
	case complete && shown:
		u.hintLocked(usertext.Error, err)
	case u.shows(usertext.Error) || u.shows(usertext.Fatal) && len(words) == 0:
		u.sayLocked(err.Error(), usertext.Hint(err))
	}
}

// showAllLocked reports whether there was anything to show at this level.
func (u *UI) showAllLocked(words []usertext.Message) (shown bool) {
	for _, message := range words {
		u.showLocked(message.Level, usertext.Printable(message.Text)+"\n")
		shown = shown || u.shows(message.Level)
	}
	return shown
}

func (u *UI) hintLocked(level usertext.Level, err error) {
	if hint := usertext.Hint(err); hint != "" {
		u.showLocked(level, "gpg-bridge: "+OneLine(hint)+"\n")
	}
}

func (u *UI) showLocked(level usertext.Level, text string) {
	if !u.shows(level) {
		return
	}
	if u.raw {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	u.writeLocked(text)
}

// Tell says what happens, for a command that shows nothing else. Its level is that of
// warnings: who sees that a bridge is lost is to see that it is back.
func (u *UI) Tell(text string) {
	u.lock()
	defer u.mu.Unlock()
	if u.shows(usertext.Error) && !u.mute {
		u.sayLocked(text, "")
	}
}

// Print prints on stdout what was asked for, one line or several, for people to read:
// unprintable characters are escaped.
func (u *UI) Print(text string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err := io.WriteString(u.Stdout, usertext.Printable(text))
	return err
}

// Output writes to stdout what was asked for, byte for byte, since it may go into a file.
func (u *UI) Output(text string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err := io.WriteString(u.Stdout, text)
	return err
}

// Show writes a text of ours to stderr as it is, between other messages.
func (u *UI) Show(text string) {
	u.lock()
	defer u.mu.Unlock()
	_, _ = io.WriteString(u.Stderr, text)
}

// ShowAt is Show from a level on.
func (u *UI) ShowAt(level usertext.Level, text string) {
	if u.shows(level) {
		u.Show(text)
	}
}

// Message writes a text of ssh's own, from a level on, to where messages go.
func (u *UI) Message(level usertext.Level, text string) {
	if !u.shows(level) {
		return
	}
	u.lock()
	defer u.mu.Unlock()
	u.writeLocked(text)
}

// shows reports whether messages of a level are shown. What is not shown does not wait for
// its turn.
func (u *UI) shows(level usertext.Level) bool { return u.Level() >= level }

// Control sends a control sequence of ours to the terminal that is stdout.
func (u *UI) Control(sequence string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, _ = io.WriteString(u.Stdout, sequence)
}

// Notice shows a text of one or more lines from a level on.
func (u *UI) Notice(level usertext.Level, text string) {
	if !u.shows(level) {
		return
	}
	u.lock()
	defer u.mu.Unlock()
	u.showLocked(level, usertext.Printable(text))
}

// IsBusy reports whether a program that reads keys or a password has the terminal to which
// messages go, and whose screen a message would disturb.
func (u *UI) IsBusy() bool {
	file, ok := u.Stderr.(*os.File)
	return u.log == nil && ok && term.IsTerminal(int(file.Fd())) && !terminalIsCooked(file)
}

// Log returns the program's log, which goes to where messages go while the level is Verbose or
// greater, as with -v.
func (u *UI) Log() *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{u}, &slog.HandlerOptions{Level: logLevel{u}}))
}

// logLevel is the level from which on the log is shown.
type logLevel struct{ ui *UI }

func (l logLevel) Level() slog.Level {
	if l.ui.shows(usertext.Verbose) {
		return slog.LevelDebug
	}
	return math.MaxInt
}

// logWriter writes the log's lines between messages, not into the middle of one.
type logWriter struct{ UI *UI }

func (w logWriter) Write(line []byte) (int, error) {
	w.UI.Say(strings.TrimSuffix(string(line), "\n"), "")
	return len(line), nil
}

// ExitCode prints the error with which a command ended, and returns its exit code.
func (u *UI) ExitCode(err error) int {
	var exit *ExitError
	var usage *UsageError
	code := 1
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		code, err = exit.Code, exit.Err
	case errors.As(err, &usage):
		code = 2
	}
	if err != nil {
		if usage != nil {
			u.Say(err.Error(), usertext.Hint(err))
		} else {
			u.Fail(err)
		}
	}
	return code
}

// errNoTerminal says that a question cannot be asked.
var errNoTerminal = errors.New("there is no terminal to ask on")

// AskSecret asks for a passphrase or password, and hides what is typed.
func (u *UI) AskSecret(ctx context.Context, prompt string) ([]byte, error) {
	return u.ask(ctx, question{prompt, false})
}

// Ask asks for a line, without its end.
func (u *UI) Ask(ctx context.Context, prompt string) (string, error) {
	answer, err := u.ask(ctx, question{prompt, true})
	return string(answer), err
}

// ask asks on the terminal; messages wait meanwhile.
func (u *UI) ask(ctx context.Context, q question) ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	tty, err := openTerminal()
	if err != nil {
		return nil, errNoTerminal
	}
	return tty.ask(ctx, question{usertext.Printable(q.prompt), q.shown})
}
