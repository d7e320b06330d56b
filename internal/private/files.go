package private

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"gpg-bridge/internal/usertext"
)

// maxSocketPath is the room in sun_path before its NUL: 107 bytes on Linux, 103 on macOS
// (unix(7), unix(4)).
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// ErrTooLong says that a file is longer than its reader allows.
var ErrTooLong = errors.New("the file is too long")

// Write replaces the content of the file called name, 0600, atomically: a reader finds the
// old content or the new.
func (d *Dir) Write(name string, data []byte) error {
	temporary := name + "." + rand.Text()
	file, err := d.Create(temporary)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = d.root.Rename(temporary, name)
	}
	if err != nil {
		_ = d.root.Remove(temporary)
		return fmt.Errorf("private file: %w", err)
	}
	return nil
}

// Create creates a file called name, 0600, and opens it for writing. The error is
// fs.ErrExist if there is one, or a symbolic link.
func (d *Dir) Create(name string) (*os.File, error) {
	return d.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
}

// Append opens the file called name for appending, and creates it, 0600, if it is
// missing.
func (d *Dir) Append(name string) (*os.File, error) {
	file, err := d.open(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	return d.open(name, os.O_WRONLY|os.O_APPEND)
}

// Empty empties the file called name, which must exist. It opens the file anew for that:
// on Windows, a handle for appending cannot shorten the file (it has FILE_APPEND_DATA
// without FILE_WRITE_DATA).
func (d *Dir) Empty(name string) error {
	file, err := d.open(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(0), file.Close())
}

// Read returns the content of the file called name. The error is fs.ErrNotExist if there
// is none, and ErrTooLong if it has more than limit bytes.
func (d *Dir) Read(name string, limit int64) ([]byte, error) {
	file, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("private file: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("private file %q: %w", d.pathOf(name), ErrTooLong)
	}
	return data, nil
}

// Remove removes the file, socket or link called name. One that is missing is
// no error.
func (d *Dir) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("private file: %w", err)
	}
	return nil
}

// SocketPath returns the path of a Unix socket called name, to listen on or to
// connect to. The error is a *SocketPathError if it is too long.
func (d *Dir) SocketPath(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	path := d.pathOf(name)
	if len(path) > maxSocketPath {
		return "", &SocketPathError{Path: path, Max: maxSocketPath}
	}
	return path, nil
}

func (d *Dir) pathOf(name string) string { return filepath.Join(d.path, name) }

// open opens a file and checks it: it must be a regular one, the user's and closed to
// others, and no symbolic link; os.Root would follow one to another file of the
// directory. Between the two checks only the user's own processes can change what is
// there. A FIFO does not block it.
func (d *Dir) open(name string, flag int) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if named, err := d.root.Lstat(name); err == nil && !named.Mode().IsRegular() && flag&os.O_EXCL == 0 {
		return nil, d.notAFile(name)
	}
	file, err := d.root.OpenFile(name, flag|openFlags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("private file: %w", err)
	}
	if err := d.checkFile(file, name); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func (d *Dir) checkFile(file *os.File, name string) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("private file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return d.notAFile(name)
	}
	return checkPrivate(info, d.pathOf(name))
}

func (d *Dir) notAFile(name string) error {
	path := d.pathOf(name)
	return &InsecureError{path, "it is a link, a device or a directory, and should be a file", "remove it: rm " + usertext.ShellWord(path)}
}

// checkName returns an error unless name is a single element of a path.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || filepath.Base(name) != name || !filepath.IsLocal(name) {
		return fmt.Errorf("private file: %q is not the name of a file", name)
	}
	return nil
}
