package sshsession

import (
	"errors"
	"io"
	"time"

	"gpg-bridge/internal/serve"
	"gpg-bridge/remoteside/prepare"
)

// silentPatience is how long after it is late the user is told of the bridge, if the session
// prints nothing.
const silentPatience = 3 * time.Second

// A notReadyError says that a session begins before its bridge is up.
type notReadyError struct{ stage serve.Stage }

func (e *notReadyError) Error() string {
	return "gpg on the host cannot be used yet: " + e.stage.Text()
}

// Hint says what to do.
func (e *notReadyError) Hint() string { return e.stage.Remedy() }

// tellLate warns that there is no bridge, if it is late and not up by now, unless something
// was said already. Whatever else goes wrong until the bridge is up goes to the log and to
// gpg-bridge status only: the user has been told once.
func (b *sessionBridge) tellLate() {
	stage, _ := b.progress.Now()
	b.mu.Lock()
	due := b.isLateLocked() && !b.said && !b.isSettled() && !isClosed(b.requested)
	b.said = b.said || due
	b.mu.Unlock()
	if due {
		b.run.service.UI.Warn(&notReadyError{stage})
	}
}

// toldLate reports whether the user was told of something, and the session has begun
// without the bridge.
func (b *sessionBridge) toldLate() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isLateLocked() && b.said
}

// tellBeforeOutput returns a writer for the session's output that tells of a late bridge before
// the first output.
func (b *sessionBridge) tellBeforeOutput(w io.Writer) io.Writer {
	if !b.isLate() {
		return w
	}
	return &lateWriter{b, w}
}

type lateWriter struct {
	bridge *sessionBridge
	w      io.Writer
}

// Write writes to the session's output. As long as the host's shell has not begun the
// preparation, most likely it has not begun the user's command either: what comes then are
// sshd's own words about the last log-in.
func (w *lateWriter) Write(p []byte) (int, error) {
	if stage, _ := w.bridge.progress.Now(); stage.On != serve.OnShell {
		w.bridge.tellLate()
	}
	return w.w.Write(p)
}

// warn tells the user what went wrong, unless the bridge is late, which they were told, and
// still not up: see tellLate. That an account for git or sftp has no shell is no news to those
// who use it.
func (b *sessionBridge) warn(err error) {
	if _, noShell := errors.AsType[*prepare.NoShellError](err); noShell && !b.run.wantsShell() {
		b.run.service.Log.Debug("there is no bridge", "error", err)
		return
	}
	b.mu.Lock()
	quiet := b.isLateLocked() && b.said && !b.isSettled()
	b.said = true
	b.mu.Unlock()
	if quiet {
		b.run.service.Log.Debug("the bridge is late", "error", err)
		return
	}
	b.run.service.UI.Warn(err)
}
