package sshsession

import (
	"sync"

	"gpg-bridge/internal/terminal"
	"gpg-bridge/internal/ui"
)

// rawMode owns the mode of the user's terminal during a session. Its methods
// may be called from any goroutine.
type rawMode struct {
	ui       *ui.UI
	terminal *terminal.Terminal // nil if there is none: then nothing is done

	mu    sync.Mutex
	undo  func() error // nil while the terminal is as the user had it
	ended bool
}

// enter gives every key to the session, until leave or end.
func (m *rawMode) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.terminal == nil || m.undo != nil || m.ended {
		return
	}
	if undo, err := m.terminal.MakeRaw(); err == nil {
		m.undo = undo
		m.ui.SetRaw(true)
	}
}

// renew sets raw mode again, after a shell or a pinentry had the terminal.
func (m *rawMode) renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.undo != nil {
		_, _ = m.terminal.MakeRaw() // undo still has the first modes
	}
}

// lend changes raw mode so that a pinentry can be answered, until renew.
func (m *rawMode) lend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.undo != nil {
		_ = m.terminal.TranslateEnter()
	}
}

func (m *rawMode) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaveLocked()
}

func (m *rawMode) leaveLocked() {
	if m.undo == nil {
		return
	}
	_ = m.undo()
	m.undo = nil
	m.ui.SetRaw(false)
}

// end leaves for good.
func (m *rawMode) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaveLocked()
	m.ended = true
}

// suspend stops the program with the terminal as the user had it.
func (m *rawMode) suspend() {
	wasRaw := m.isRaw()
	m.leave()
	terminal.Suspend()
	if wasRaw {
		m.enter()
	}
}

func (m *rawMode) isRaw() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.undo != nil
}
