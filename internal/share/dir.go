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
	"sync"

	"github.com/gofrs/flock"

	"gpg-bridge/internal/private"
)

// ErrHeld says that another process is the target's bridge.
var ErrHeld = errors.New("another process is this target's bridge")

// ErrNobody says that no process is the target's bridge.
var ErrNobody = errors.New("no bridge for this target")

// ErrTakenDown is the ErrNobody of a bridge that the user has taken down: those that used
// it must not start another.
var ErrTakenDown = fmt.Errorf("%w any more: it was taken down", ErrNobody)

const (
	lockSuffix   = ".lock"
	socketSuffix = ".sock"
)

// idForm keeps an ID usable as a file's name, and its socket's path short.
var idForm = regexp.MustCompile(`^[0-9a-f]{8,32}$`)

// A Dir is where the processes of one user find each other. Its methods may be
// called from any goroutine.
type Dir struct {
	path string

	mu    sync.Mutex
	files *private.Dir
	gone  []*private.Dir // earlier ones, which were removed
}

func newDir(files *private.Dir) *Dir { return &Dir{path: files.Path(), files: files} }

// Open opens the user's runtime directory ([private.Runtime]).
func Open() (*Dir, error) {
	files, err := private.Runtime()
	if err != nil {
		return nil, err
	}
	return newDir(files), nil
}

// OpenAt opens the directory at path, and creates it if it is missing.
func OpenAt(path string) (*Dir, error) {
	files, err := private.Open(path)
	if err != nil {
		return nil, err
	}
	return newDir(files), nil
}

// Close closes the directory; what was opened through it stays open.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.files.Close()
	for _, files := range d.gone {
		err = errors.Join(err, files.Close())
	}
	d.gone = nil
	return err
}

// current returns the directory, which is created again if it was removed.
func (d *Dir) current() (*private.Dir, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files.IsThere() {
		return d.files, nil
	}
	files, err := private.Open(d.path)
	if err != nil {
		return nil, err
	}
	d.gone = append(d.gone, d.files) // others may be using it
	d.files = files
	return files, nil
}

// Path is the directory, without links.
func (d *Dir) Path() string { return d.path }

// Log opens the log of a target's bridge for appending, 0600.
func (d *Dir) Log(id string) (*os.File, error) {
	if !idForm.MatchString(id) {
		return nil, badID(id)
	}
	files, err := d.current()
	if err != nil {
		return nil, err
	}
	return files.Append(id + ".log")
}

// EmptyLog empties the log of a target's bridge, which others may have open.
func (d *Dir) EmptyLog(id string) error {
	if !idForm.MatchString(id) {
		return badID(id)
	}
	files, err := d.current()
	if err != nil {
		return err
	}
	return files.Empty(id + ".log")
}

// LogPath is the path of the file that Log opens.
func (d *Dir) LogPath(id string) string { return filepath.Join(d.path, id+".log") }

// lock takes the target's lock, which the system releases when this process ends, for
// whatever reason. The file is never removed: otherwise two processes could each hold the
// lock of a file that was once at this path. Within one process it can be taken only once,
// too.
func (d *Dir) lock(id string) (*flock.Flock, error) {
	for {
		lock, err := d.lockOnce(id)
		if err != nil || d.isAt(lock, id) {
			return lock, err
		}
		_ = lock.Close() // somebody else removed it meanwhile
	}
}

func (d *Dir) lockOnce(id string) (*flock.Flock, error) {
	if !idForm.MatchString(id) {
		return nil, badID(id)
	}
	files, err := d.current()
	if err != nil {
		return nil, err
	}
	file, err := files.Append(id + lockSuffix) // checks what is there
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	lock := flock.New(d.LockPath(id), flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock of the target: %w", err)
	case !got:
		return nil, ErrHeld
	}
	return lock, nil
}

// isAt reports whether the lock's file is the one that others find.
func (d *Dir) isAt(lock *flock.Flock, id string) bool { return isFileOf(lock, d.LockPath(id)) }

// isFileOf reports whether the file at path is the one that is locked.
func isFileOf(lock *flock.Flock, path string) bool {
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(held, named)
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
func (d *Dir) LockPath(id string) string { return filepath.Join(d.path, id+lockSuffix) }

// IDs lists the targets that have, or once had, a bridge.
func (d *Dir) IDs() ([]string, error) {
	entries, err := os.ReadDir(d.path)
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
