// Package atomicfile replaces a file of the user's whole or not at all, and keeps its mode
// and owner, and its group where the user may.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces the content of the file at path, which is no symbolic link, by data.
// like is what the file was when it was read, whose mode and owner the new one gets; nil if
// there was none: the new one is then 0600. When the new content is on the disk beside the
// old one, ready is called: an error of its leaves the old one in place, and is returned.
func Replace(path string, data []byte, like fs.FileInfo, ready func() error) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text())
	err := WriteNew(temporary, data, like)
	if err == nil {
		err = ready()
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// WriteNew creates a file, 0600 or with the owner and mode of like; the error is fs.ErrExist
// if there is one.
func WriteNew(path string, data []byte, like fs.FileInfo) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if like != nil {
		err = makeLike(file, like)
	}
	if err == nil {
		_, err = file.Write(data)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}
