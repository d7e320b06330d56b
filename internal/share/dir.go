package share

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"gpg-bridge/internal/private"
)

// ErrHeld says that another process is the target's bridge.
var ErrHeld = errors.New("another process is this target's bridge")

// ErrNobody says that no process is the target's bridge.
var ErrNobody = errors.New("no bridge for this target")

// ErrTakenDown is the ErrNobody of a bridge that was ended by its user: it is
// not to be started again for those that used it.
var ErrTakenDown = fmt.Errorf("%w any more: it was taken down", ErrNobody)

const (
	lockSuffix   = ".lock"
	socketSuffix = ".sock"
)

// idForm keeps an ID usable as a file's name, and its socket's path short.
var idForm = regexp.MustCompile(`^[0-9a-f]{8,32}$`)

// A Dir is where the processes of one user find each other. Its methods may be
// called from any goroutine.
type Dir struct{ files *private.Dir }

// Open opens the runtime directory of the user ([private.Runtime]).
func Open() (*Dir, error) {
	files, err := private.Runtime()
	if err != nil {
		return nil, err
	}
	return &Dir{files}, nil
}

// OpenAt opens the directory at path, and makes it where it is missing.
func OpenAt(path string) (*Dir, error) {
	files, err := private.Open(path)
	if err != nil {
		return nil, err
	}
	return &Dir{files}, nil
}

// Close closes the directory; what was opened through it stays open.
func (d *Dir) Close() error { return d.files.Close() }

// Log opens the log of a target's bridge for appending, 0600.
func (d *Dir) Log(id string) (*os.File, error) {
	if !idForm.MatchString(id) {
		return nil, badID(id)
	}
	return d.files.Append(id + ".log")
}

// LogPath is where Log is.
func (d *Dir) LogPath(id string) string { return filepath.Join(d.files.Path(), id+".log") }

// lock takes the target's lock, which the system releases when this process
// ends, however it does. The file stays: were it removed, two processes could
// each hold the lock of a file that was once there. Two calls in one process
// exclude each other, too.
func (d *Dir) lock(id string) (*flock.Flock, error) {
	if !idForm.MatchString(id) {
		return nil, badID(id)
	}
	file, err := d.files.Append(id + lockSuffix) // judges what is there
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(d.files.Path(), id+lockSuffix), flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock of the target: %w", err)
	case !got:
		return nil, ErrHeld
	}
	return lock, nil
}

func badID(id string) error { return fmt.Errorf("not a target's ID: %.40q", id) }

// Held reports whether a process is the target's bridge, even one that does not
// answer.
func (d *Dir) Held(id string) (bool, error) {
	if _, err := os.Lstat(d.LockPath(id)); errors.Is(err, fs.ErrNotExist) && idForm.MatchString(id) {
		return false, nil
	}
	lock, err := d.lock(id)
	if errors.Is(err, ErrHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}

// LockPath is the file whose lock a target's bridge holds.
func (d *Dir) LockPath(id string) string { return filepath.Join(d.files.Path(), id+lockSuffix) }

// IDs lists the targets that have, or once had, a bridge.
func (d *Dir) IDs() ([]string, error) {
	entries, err := os.ReadDir(d.files.Path())
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, entry := range entries {
		if id, ok := strings.CutSuffix(entry.Name(), lockSuffix); ok && idForm.MatchString(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}
