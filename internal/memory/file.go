package memory

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"gpg-bridge/internal/private"
)

const (
	maxStateEntries = 256
	maxStateSize    = 64 << 10
)

// A File holds pairs of words, one on each line, the newest last, in a directory that
// only the user can enter. It is a cache: if it cannot be read or written, or others have
// access to it, it counts as empty, and that is only logged. Of two concurrent writes one
// may be lost.
type File struct {
	Dir  string
	Name string
	Log  *slog.Logger
}

// Get returns the value of a key, or "".
func (s *File) Get(key string) string {
	if _, err := os.Lstat(s.Dir); err != nil {
		return ""
	}
	dir, err := private.Open(s.Dir)
	if err != nil {
		s.Log.Debug("nothing is remembered", "file", s.Name, "err", err)
		return ""
	}
	defer func() { _ = dir.Close() }()
	value := ""
	for _, line := range s.lines(dir) {
		if k, v, _ := strings.Cut(line, " "); k == key {
			value = v
		}
	}
	return value
}

// Put sets the value of a key; "" forgets it.
func (s *File) Put(key, value string) {
	if err := s.replace(key, value); err != nil {
		s.Log.Debug("not remembered", "file", s.Name, "err", err)
	}
}

func (s *File) replace(key, value string) error {
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o700); err != nil {
		return err
	}
	dir, err := private.Open(s.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	var kept []string
	for _, line := range s.lines(dir) {
		if !strings.HasPrefix(line, key+" ") {
			kept = append(kept, line)
		}
	}
	if value != "" {
		kept = append(kept, key+" "+value)
	}
	kept = kept[max(0, len(kept)-maxStateEntries):]
	return dir.Write(s.Name, []byte(strings.Join(append(kept, ""), "\n")))
}

// lines returns the lines of the file that have two words; none if it cannot be read.
func (s *File) lines(dir *private.Dir) []string {
	data, err := dir.Read(s.Name, maxStateSize)
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
