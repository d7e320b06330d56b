package sshconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gpg-bridge/internal/atomicfile"
)

// maxSize is the size limit of an ssh_config, in bytes.
const maxSize = 1 << 20

// byHand is what to do about a file that cannot be written.
const byHand = "put the lines in with what manages this file, above all others"

// A File is an ssh_config file as it was when it was opened.
type File struct {
	path string // as the user knows it
	real string // without symbolic links
	info fs.FileInfo
	data []byte // nil: there is no file
}

// Open reads the file at path, which need not exist. A symbolic link, for instance into a
// repository of such files, is followed and kept. Errors are *FileError.
func Open(path string) (*File, error) {
	f := &File{path: path, real: path}
	if err := f.follow(); err != nil {
		return nil, err
	}
	info, data, err := read(f.real)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, &FileError{path, "cannot be read", "name another file with -F", err}
	}
	f.info, f.data = info, data
	return f, nil
}

func (f *File) follow() error {
	info, err := os.Lstat(f.path)
	if err != nil {
		return nil // it is missing, or read will return the error
	}
	real, err := filepath.EvalSymlinks(f.path)
	if err == nil {
		f.real = real
		return nil
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	return &FileError{f.path, "it is a link that leads nowhere", "make the file that it leads to, or remove it", err}
}

func read(path string) (fs.FileInfo, []byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = fmt.Errorf("it is longer than %d bytes", maxSize)
	}
	if data == nil {
		data = []byte{}
	}
	return info, data, err
}

// Path is the file's path as it was given to Open.
func (f *File) Path() string { return f.path }

// Data is the file's content, nil if there was no file.
func (f *File) Data() []byte { return f.data }

// Backup copies the content to a file beside it, 0600, and returns that file's path:
// config.gpg-bridge.bak, with a number if that is the backup of another content. If kept
// reports that an existing backup has all that matters, its path is returned instead.
// Errors are *FileError.
func (f *File) Backup(kept func(old []byte) bool) (path string, err error) {
	for n := 0; ; n++ {
		path = f.real + ".gpg-bridge.bak"
		if n > 0 {
			path += fmt.Sprintf(".%d", n)
		}
		err := atomicfile.WriteNew(path, f.data, nil)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", &FileError{f.path, "no copy of it can be kept", byHand, err}
		}
		if _, old, err := read(path); err == nil && kept(old) {
			return path, nil
		}
	}
}

// Replace replaces the file's content by data, whole or not at all, and keeps its mode and
// owner. A new file is 0600, and its directory, if that is missing, 0700. It fails if
// somebody else has changed the file since Open. Errors are *FileError.
func (f *File) Replace(data []byte) error {
	if f.info == nil {
		if err := os.Mkdir(filepath.Dir(f.real), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return f.notWritten(err)
		}
	}
	if err := atomicfile.Replace(f.real, data, f.info, f.unchanged); err != nil {
		return f.notWritten(err)
	}
	return nil
}

// Remove removes the file. It fails if somebody else has changed it since Open. Errors are
// *FileError.
func (f *File) Remove() error {
	err := f.unchanged()
	if err == nil {
		err = os.Remove(f.real)
	}
	if err != nil {
		return f.notWritten(err)
	}
	return nil
}

var errChanged = errors.New("it was changed meanwhile")

func (f *File) notWritten(err error) error {
	advice := byHand
	if errors.Is(err, errChanged) {
		advice = "run it again"
	}
	return &FileError{f.path, "cannot be written", advice, err}
}

func (f *File) unchanged() error {
	_, data, err := read(f.real)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.data == nil:
		return nil
	case err != nil:
		return err
	case f.data == nil || !bytes.Equal(data, f.data):
		return errChanged
	}
	return nil
}
