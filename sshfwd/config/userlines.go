package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// sshIncludeDepth is ssh's limit for Include (READCONF_MAX_DEPTH in readconf.c).
const sshIncludeDepth = 16

// userLines finds the line that the user wrote for a keyword, with its quotes. ssh alone
// knows which of several lines is in force, so a line counts only if it yields the value
// that ssh -G has printed. The files are read when they are first needed.
type userLines struct {
	options Options

	read       bool
	incomplete bool // something could not be read or understood
	lines      []userLine
}

// A userLine is a line of ssh_config, taken apart by SplitLine.
type userLine struct {
	keyword string
	words   []string
}

// filesOf returns the files that the user named for a keyword, for which ssh -G has
// printed value; nil if that cannot be told.
func (w *userLines) filesOf(c *Config, key, value string) []string {
	line := w.options.line()
	for _, option := range line.Values('o') { // the first -o counts, and comes before all files
		keyword, _, words, err := SplitLine(option)
		if err != nil {
			return nil
		}
		if keyword == key {
			return c.filesIfPrinted(words, value)
		}
	}
	w.readOnce()
	found := c.filesIfPrinted(defaultFiles(key), value)
	for _, written := range w.lines {
		if written.keyword != key {
			continue
		}
		files := c.filesIfPrinted(written.words, value)
		if files == nil {
			continue
		}
		if found != nil && !slices.Equal(found, files) {
			return nil
		}
		found = files
	}
	if w.incomplete {
		return nil
	}
	return found
}

// defaultFiles are ssh's own for a keyword, if they are in a home directory: its name may
// contain a space.
func defaultFiles(key string) []string {
	if key == "userknownhostsfile" {
		return []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}
	}
	return nil
}

// filesIfPrinted returns words as paths if ssh -G prints value for them, else nil. How much
// of a word ssh -G expands depends on the keyword and on ssh's version.
func (c *Config) filesIfPrinted(words []string, value string) []string {
	unchanged := func(word string) (string, error) { return word, nil }
	for _, expand := range []func(string) (string, error){unchanged, ExpandTilde, c.expandPath} {
		var paths []string
		for _, word := range words {
			path, err := expand(word)
			if err != nil {
				break
			}
			paths = append(paths, path)
		}
		if len(paths) == len(words) && filepath.ToSlash(strings.Join(paths, " ")) == filepath.ToSlash(value) {
			return expandTildes(paths)
		}
	}
	return nil
}

// readOnce reads the configuration files that ssh reads: all lines, whatever Host or Match
// they stand under.
func (w *userLines) readOnce() {
	if w.read {
		return
	}
	w.read = true
	home, err := homeDir()
	switch file := w.options.configFile(); {
	case strings.EqualFold(file, "none"):
	case file != "":
		w.readFile(file, 0)
	case err != nil:
		w.incomplete = true
	default:
		w.readFile(filepath.Join(home, ".ssh", "config"), 0)
		w.readFile(filepath.Join(systemConfigDir(), "ssh_config"), 0)
	}
}

func (w *userLines) readFile(path string, depth int) {
	data, err := readRegularFile(path)
	if err != nil {
		w.incomplete = w.incomplete || !errors.Is(err, fs.ErrNotExist)
		return
	}
	for text := range strings.Lines(string(data)) {
		text, _, _ = strings.Cut(text, "\x00") // for ssh, a C program, the line ends there
		keyword, _, words, err := SplitLine(text)
		w.incomplete = w.incomplete || err != nil
		w.lines = append(w.lines, userLine{keyword, words})
		if keyword != "include" {
			continue
		}
		for _, pattern := range words {
			w.include(pattern, depth+1)
		}
	}
}

// include reads what an Include names. It looks up a relative path in both directories,
// the one that ssh uses for the user's file and the one for the system's.
func (w *userLines) include(pattern string, depth int) {
	pattern, err := ExpandTilde(pattern)
	home, homeErr := homeDir()
	if err != nil || homeErr != nil || depth > sshIncludeDepth || strings.ContainsAny(pattern, "$%[{") {
		w.incomplete = true
		return
	}
	patterns := []string{pattern}
	if !filepath.IsAbs(pattern) {
		patterns = []string{filepath.Join(home, ".ssh", pattern), filepath.Join(systemConfigDir(), pattern)}
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		w.incomplete = w.incomplete || err != nil
		for _, file := range files {
			w.readFile(file, depth)
		}
	}
}
