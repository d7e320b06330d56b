//go:build unix

package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through, as in the kernel
// (path_resolution(7)).
const maxLinks = 40

// CheckPlace returns an *InsecureError if any user of this machine can put something at
// path, which must be absolute, or may have put there what is there now. That is so if it
//
//   - is in a directory that everybody may write to, such as /tmp, and is missing or
//     belongs to neither root nor the user,
//   - is itself such a directory, or
//   - is reached through something of which this is true, symbolic links included.
//
// Open demands more. Here, a directory that belongs to an administrator, or that a group
// may write to, is trusted because the user has named it.
func CheckPlace(path string) error {
	dir, todo := "/", elements(path)
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if name == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		next := filepath.Join(dir, name)
		info, err := checkEntry(dir, next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink == 0:
			dir = next
			continue
		}
		if links++; links > maxLinks {
			return &InsecureError{path, "too many symbolic links lead to it", "name the directory that is meant"}
		}
		target, err := os.Readlink(next)
		if err != nil {
			return fmt.Errorf("place: %w", err)
		}
		if filepath.IsAbs(target) {
			dir = "/"
		}
		todo = append(elements(target), todo...)
	}
	return checkNotShared(dir)
}

func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// checkEntry checks what is, or could be put, at path in dir. The error is fs.ErrNotExist
// if there is nothing, and not everybody could change that.
func checkEntry(dir, path string) (fs.FileInfo, error) {
	above, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	info, err := os.Lstat(path)
	if !isShared(above, dir) {
		return info, err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &InsecureError{path, "anybody could put something there", "name a directory of your own"}
	case err != nil:
		return nil, fmt.Errorf("place: %w", err)
	case above.Mode()&fs.ModeSticky == 0:
		return nil, checkNotShared(dir)
	}
	if uid, ok := ownerOf(info); !ok || uid != 0 && uid != os.Geteuid() {
		return nil, &InsecureError{path, fmt.Sprintf("it belongs to user %d", uid), "name a directory of your own"}
	}
	return info, nil
}

func checkNotShared(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("place: %w", err)
	}
	if isShared(info, path) {
		return &InsecureError{path, fmt.Sprintf("everybody may write there (mode %#o)", info.Mode().Perm()), "name a directory of your own"}
	}
	return nil
}

// isShared reports whether everybody may write to what is at path.
func isShared(info fs.FileInfo, path string) bool {
	return info.Mode().Perm()&0o002 != 0 && !modeSaysNothingAt(path)
}
