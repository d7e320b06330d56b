package sshmaster

import "errors"

// A Pending does not exist: ssh shares no connection on Windows.
type Pending struct{ PID int }

// Pending fails.
func (m *Master) Pending() (*Pending, error) { return nil, errors.ErrUnsupported }

// Begin fails.
func (p *Pending) Begin() error { return errors.ErrUnsupported }

// Cancel does nothing.
func (p *Pending) Cancel() {}
