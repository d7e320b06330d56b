package share

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	// pidSuffix is that of the file that names the process that has the lock.
	pidSuffix = ".pid"

	// aliveSuffix is that of a file that this process has locked, too. If it is not locked,
	// the named process has ended, and its process ID may be another's now.
	aliveSuffix = pidSuffix + lockSuffix
)

const (
	// answerTime is how long a bridge has to answer, unless the asker sets another time
	// ([Lease.AnswerWithin]).
	answerTime = 3 * time.Second

	// MaxVacancy is how long a lock may be held while nobody listens: by a process that is
	// about to listen, or one that is closing and sends the last status.
	MaxVacancy = lastStatusTime + time.Second/2

	// readersPause and readersTime are for the lock of the named process, which others have
	// for a moment while they check whether that process lives.
	readersPause = 5 * time.Millisecond
	readersTime  = 200 * time.Millisecond
)

// A SilentError says that the process that is the target's bridge does not answer: it is
// stopped, or hangs, or closes the connection.
type SilentError struct {
	PID     int    // 0 if not known
	Lock    string // the file that it has locked
	Refuses bool   // it lives, and closes the connection without an answer
}

func (e *SilentError) Error() string {
	what := "does not answer"
	if e.Refuses {
		what = "answers nothing that can be understood"
	}
	if e.PID == 0 {
		return "a process is the bridge of a target and " + what
	}
	return fmt.Sprintf("process %d, a gpg-bridge, %s", e.PID, what)
}

// Hint says what to do.
func (e *SilentError) Hint() string {
	switch {
	case runtime.GOOS == "windows":
		return "end the gpg-bridge.exe that hangs with the Task Manager; it has " + e.Lock + " open"
	case e.PID == 0:
		return "see which one has the file open: fuser " + e.Lock
	case e.Refuses:
		return fmt.Sprintf("it may be another version of gpg-bridge: end it, with that one's gpg-bridge down or kill %d", e.PID)
	}
	return fmt.Sprintf("if it is stopped, let it go on: fg in its shell, or kill -CONT %d; else end it: kill -9 %d", e.PID, e.PID)
}

// Silent returns the error for a target's bridge that does not answer, with its process if
// that is known.
func (d *Dir) Silent(id string) *SilentError {
	return &SilentError{PID: d.holderPID(id), Lock: d.LockPath(id)}
}

// notePID writes the ID of this process, which has the lock, to the file, and returns the
// lock that shows that it lives: before, unless that is nil or its file is gone.
func (d *Dir) notePID(id string, pid int, before *flock.Flock) (*flock.Flock, error) {
	files, err := d.current()
	if err != nil {
		return nil, err
	}
	if err := files.Write(id+pidSuffix, []byte(strconv.Itoa(pid)+"\n")); err != nil {
		return nil, err
	}
	if before != nil && isFileOf(before, d.alivePath(id)) {
		return before, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readersTime)
	defer cancel()
	alive := flock.New(d.alivePath(id), flock.SetPermissions(0o600))
	_, _ = alive.TryLockContext(ctx, readersPause) // without it, others do not name us
	return alive, nil
}

func (d *Dir) alivePath(id string) string { return filepath.Join(d.path, id+aliveSuffix) }

// isAlive reports whether the named process lives.
func (d *Dir) isAlive(id string) bool {
	alive := flock.New(d.alivePath(id), flock.SetPermissions(0o600))
	got, err := alive.TryRLock()
	_ = alive.Close()
	return err == nil && !got
}

// holderPID returns the ID of the process that has the lock, or 0.
func (d *Dir) holderPID(id string) int {
	if !d.isAlive(id) {
		return 0
	}
	files, err := d.current()
	if err != nil {
		return 0
	}
	text, err := files.Read(id+pidSuffix, 32)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0
	}
	return pid
}
