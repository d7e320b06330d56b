package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A Dir is an open directory that belongs to the user of this process and that
// nobody else may enter. What is done through it is done in that very directory,
// whatever happens to its path. Its methods may be called from any goroutine.
type Dir struct {
	root *os.Root
	path string
}

// Open opens the directory at path, and makes it, 0700, where it is missing.
// Its parent must exist. The error is an *InsecureError where another user could
// look into it, or put something in its place.
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

// openIn opens, and makes, the directory called name in above.
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

// checkOpened judges the open directory. It must be the one that was seen: in
// between it may have been exchanged for a link, which os.Root follows within
// the parent.
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
	return &InsecureError{path, reason, "see who made it, and remove it: rm " + quoteForShell(path)}
}

// Path returns the directory's path, without links. Somebody who may write to
// a directory above could lead it elsewhere; Open has seen to it that only root
// and the user may.
func (d *Dir) Path() string { return d.path }

// Close closes the directory. What was opened through it stays open.
func (d *Dir) Close() error { return d.root.Close() }
