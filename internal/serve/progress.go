package serve

import (
	"fmt"
	"sync"
	"time"
)

// A Stage says what a bridge that is coming up waits for.
type Stage struct {
	On  Where
	PID int // of the other process, 0 if not known
}

// Where says for whom a bridge that is coming up waits.
type Where uint8

const (
	OnLocal Where = iota // for GPG on this machine
	OnShell              // for the host's shell, which has not begun the preparation
	OnHost               // for the host
	OnOther              // for another process, which is the target's bridge
)

// Text says what it waits for.
func (s Stage) Text() string {
	switch {
	case s.On == OnLocal:
		return "GPG on this machine does not answer"
	case s.On == OnShell:
		return "the host's shell is not ready yet"
	case s.On == OnHost:
		return "the host is not ready yet"
	case s.PID == 0:
		return "another gpg-bridge is not up yet"
	}
	return fmt.Sprintf("process %d, another gpg-bridge, is not up yet", s.PID)
}

// Remedy says what to do about it.
func (s Stage) Remedy() string {
	switch s.On {
	case OnLocal:
		return "see which of these hangs here: gpgconf --list-dirs, gpg-connect-agent /bye, gpg -K"
	case OnShell:
		return "see what takes long in the start-up files of the host's shell"
	case OnHost:
		return "see what takes long on the host: gpg --list-keys, a lock in its ~/.gnupg"
	}
	return "gpg-bridge status says how it is"
}

// Progress is the current Stage of a bridge that is coming up. The zero value waits for GPG on
// this machine. Its methods may be called from any goroutine.
type Progress struct {
	mu    sync.Mutex
	stage Stage
	since time.Time
}

// WaitFor notes what the bridge waits for from now on.
func (p *Progress) WaitFor(stage Stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.since = stage, time.Now()
}

// Now returns what it waits for, and since when.
func (p *Progress) Now() (stage Stage, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stage, p.since
}

// waitingNotice is how long a process that has nothing else to do waits for its bridge before
// it says what for.
const waitingNotice = 5 * time.Second

// NoticeWaiting tells the user what a bridge waits for, if that takes long. The caller calls
// stop when it no longer waits.
func (s *Service) NoticeWaiting(p *Progress) (stop func()) {
	notice := time.AfterFunc(waitingNotice, func() {
		stage, _ := p.Now()
		s.UI.Tell("waiting: " + stage.Text())
	})
	return func() { notice.Stop() }
}
