//go:build !linux

package fakesshd

import (
	"errors"
	"os"
)

// A pty is offered on Linux only; elsewhere pty-req is refused.
type pty struct {
	master, slave *os.File
}

// OpenPTY returns errors.ErrUnsupported.
func OpenPTY() (master, slave *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func openPTY() (*pty, error) { return nil, errors.ErrUnsupported }

func (p *pty) resize(windowPayload) error { return errors.ErrUnsupported }

func (p *pty) close() {}
