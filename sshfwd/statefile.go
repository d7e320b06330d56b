package sshfwd

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"gpg-bridge/internal/private"
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
	if _, err := os.Lstat(s.dir); err != nil {
		return ""
	}
	dir, err := private.Open(s.dir)
	if err != nil {
		s.log.Debug("no memory of keys", "err", err)
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

// put sets the value of a key; "" forgets it.
func (s *stateFile) put(key, value string) {
	if err := s.replace(key, value); err != nil {
		s.log.Debug("key not remembered", "err", err)
	}
}

func (s *stateFile) replace(key, value string) error {
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o700); err != nil {
		return err
	}
	dir, err := private.Open(s.dir)
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
	return dir.Write(stateFileName, []byte(strings.Join(append(kept, ""), "\n")))
}

// lines gives what the file holds: nothing if it is not as we write it.
func (s *stateFile) lines(dir *private.Dir) []string {
	data, err := dir.Read(stateFileName, maxStateSize)
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
