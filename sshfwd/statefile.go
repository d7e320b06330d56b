package sshfwd

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
)

const (
	stateFileName   = "last-keys"
	maxStateEntries = 256
	maxStateSize    = 64 << 10
)

// stateFile holds pairs of words, one on each line, the newest last, in a
// directory that only the user can enter. It is a cache: what cannot be read or
// written, or is not the user's alone, is none, and only logged. Two writers at
// once lose one of their entries.
type stateFile struct {
	dir string
	log *slog.Logger
}

// get gives the value of a key, or "".
func (s *stateFile) get(key string) string {
	root, err := s.open(false)
	if err != nil {
		s.log.Debug("no memory of keys", "err", err)
		return ""
	}
	defer func() { _ = root.Close() }()
	value := ""
	for _, line := range s.lines(root) {
		if k, v, _ := strings.Cut(line, " "); k == key {
			value = v
		}
	}
	return value
}

// put sets the value of a key; "" forgets it.
func (s *stateFile) put(key, value string) {
	if err := s.replace(key, value); err != nil {
		s.log.Debug("key not remembered", "err", err)
	}
}

func (s *stateFile) replace(key, value string) error {
	root, err := s.open(true)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var kept []string
	for _, line := range s.lines(root) {
		if !strings.HasPrefix(line, key+" ") {
			kept = append(kept, line)
		}
	}
	if value != "" {
		kept = append(kept, key+" "+value)
	}
	kept = kept[max(0, len(kept)-maxStateEntries):]
	return writeAtomically(root, stateFileName, []byte(strings.Join(append(kept, ""), "\n")))
}

// open opens the directory, and makes it first if asked to.
func (s *stateFile) open(create bool) (*os.Root, error) {
	if create {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil && !isPrivate(info) {
		err = fmt.Errorf("%q is not the user's alone", s.dir)
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

// lines gives what the file holds: nothing if it is not as we write it.
func (s *stateFile) lines(root *os.Root) []string {
	info, err := root.Lstat(stateFileName)
	if err != nil || !info.Mode().IsRegular() || !isPrivate(info) || info.Size() > maxStateSize {
		return nil
	}
	file, err := root.Open(stateFileName)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxStateSize))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); len(strings.Fields(line)) == 2 {
			lines = append(lines, line)
		}
	}
	return lines
}

// writeAtomically replaces a file as a whole: a reader sees the old or the new.
func writeAtomically(root *os.Root, name string, data []byte) error {
	temporary := name + "." + rand.Text()
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}

// isPrivate: the user's own, and nobody else may write or read it.
func isPrivate(info fs.FileInfo) bool { return isOwn(info) && !tooOpen(info) }
