package main

import (
	"sync"

	"gpg-bridge/sshfwd"
)

// rawMode owns the mode of the user's terminal during a session. Its methods
// may be called from any goroutine.
type rawMode struct {
	ui       *ui
	terminal *sshfwd.Terminal // nil where there is none: nothing is to be done

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
		m.ui.setRaw(true)
	}
}

// renew enters again after a shell that stopped us had the terminal for itself.
func (m *rawMode) renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.undo != nil {
		_, _ = m.terminal.MakeRaw() // undo knows what was before
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
	m.ui.setRaw(false)
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
	sshfwd.Suspend()
	if wasRaw {
		m.enter()
	}
}

func (m *rawMode) isRaw() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.undo != nil
}
