package pinentry

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// endTimeout is how long a prompt has to end after each signal.
	endTimeout = time.Second
	endPoll    = 20 * time.Millisecond
)

// errStays says that some of the processes did not end.
var errStays = errors.New("the prompt does not end")

// End cancels the prompt. It and all that it has started get SIGINT, as from Ctrl-C, after
// which a pinentry restores its terminal; what is left of them after a second gets SIGTERM,
// and after another SIGKILL. To the agent, the end of the pinentry's output means that the
// operation is cancelled.
func (p Process) End(ctx context.Context) error {
	var handles []int
	defer func() {
		for _, fd := range handles {
			_ = unix.Close(fd)
		}
	}()
	for _, m := range p.family {
		fd, err := m.open()
		if err == nil {
			handles = append(handles, fd)
		}
	}
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGKILL} {
		for _, fd := range handles {
			_ = unix.PidfdSendSignal(fd, signal, nil, 0) // it may have ended
		}
		if gone, err := p.awaitEnd(ctx); gone || err != nil {
			return err
		}
	}
	return errStays
}

// open returns a pidfd of the process (pidfd_open(2)), if its ID has not been given to
// another meanwhile.
func (m member) open() (int, error) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err != nil {
		return -1, err
	}
	if !m.alive() {
		_ = unix.Close(fd)
		return -1, unix.ESRCH
	}
	return fd, nil
}

func (m member) alive() bool {
	stat, err := readStat(m.pid)
	return err == nil && stat.start == m.start && stat.alive()
}

func (p Process) awaitEnd(ctx context.Context) (gone bool, err error) {
	ticker := time.NewTicker(endPoll)
	defer ticker.Stop()
	for deadline := time.Now().Add(endTimeout); time.Now().Before(deadline); {
		gone = true
		for _, m := range p.family {
			gone = gone && !m.alive()
		}
		if gone {
			return true, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}
