package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gpg-bridge/internal/usertext"
)

// A Dir is an open directory that belongs to the user of this process and that
// nobody else may enter. Its methods work in that very directory, whatever happens to
// its path, and may be called from any goroutine.
type Dir struct {
	root *os.Root
	path string
}

// Open opens the directory at path, and creates it, 0700, if it is missing. Its parent
// must exist. The error is an *InsecureError if another user could look into the
// directory, or replace it.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("private directory: %w", err)
	}
	// The parent may be reached by links, as /tmp is on macOS.
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("private directory: %w", err)
	}
	if err := checkAncestors(parent); err != nil {
		return nil, err
	}
	above, err := os.OpenRoot(parent)
	if err != nil {
		return nil, fmt.Errorf("private directory: %w", err)
	}
	defer func() { _ = above.Close() }()
	return openIn(above, filepath.Base(path))
}

// openIn opens the directory called name in above, and creates it if it is missing.
func openIn(above *os.Root, name string) (*Dir, error) {
	path := filepath.Join(above.Name(), name)
	if err := above.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("private directory: %w", err)
	}
	there, err := above.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("private directory: %w", err)
	}
	if !there.IsDir() {
		return nil, notADirectory(path, there)
	}
	root, err := above.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("private directory: %w", err)
	}
	if err := checkOpened(root, there, path); err != nil {
		_ = root.Close()
		return nil, err
	}
	return &Dir{root: root, path: path}, nil
}

// checkOpened checks the open directory. It must be the one that was seen before it was
// opened: it may have been replaced by a link meanwhile, which os.Root follows if it stays
// within the parent.
func checkOpened(root *os.Root, seen fs.FileInfo, path string) error {
	info, err := root.Stat(".")
	if err != nil {
		return fmt.Errorf("private directory: %w", err)
	}
	if !os.SameFile(info, seen) {
		return &InsecureError{path, "it was exchanged while it was opened", "see who else writes to its directory"}
	}
	return checkPrivate(info, path)
}

func notADirectory(path string, info fs.FileInfo) error {
	reason := "it is not a directory"
	if info.Mode()&fs.ModeSymlink != 0 {
		reason = "it is a symbolic link"
	}
	return &InsecureError{path, reason, "see who made it, and remove it: rm " + usertext.ShellWord(path)}
}

// Path returns the directory's path, without links. Whoever may write to a directory
// above could make it lead elsewhere; Open has made sure that only root and the user
// may.
func (d *Dir) Path() string { return d.path }

// IsThere reports whether the directory is still the one at its path. A clean-up of
// temporary files, or the end of a log-in, may have removed it.
func (d *Dir) IsThere() bool {
	opened, err := d.root.Stat(".")
	if err != nil {
		return false
	}
	named, err := os.Lstat(d.path)
	return err == nil && os.SameFile(opened, named)
}

// Close closes the directory. What was opened through it stays open.
func (d *Dir) Close() error { return d.root.Close() }
