package config

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// setFiles reads the values of ssh -G that may name several files. ssh -G separates
// the names by spaces and drops their quotes: "a b" may be one file or two. Where that
// is ambiguous, the line that the user wrote decides (userlines.go). Where it does not
// either, every file that may be meant is taken, so that none is missed.
func (c *Config) setFiles(o Options, s Settings) {
	w := &userLines{options: o}
	var userInDoubt, globalInDoubt bool
	c.UserKnownHostsFiles, userInDoubt = c.files(w, s, "userknownhostsfile")
	if userInDoubt && c.UserKnownHostsFiles == nil {
		// names are given, though no such file exists; an empty list would mean that the
		// user wants none
		c.UserKnownHostsFiles = expandTildes([]string{s.get("userknownhostsfile")})
	}
	c.GlobalKnownHostsFiles, globalInDoubt = c.files(w, s, "globalknownhostsfile")
	c.KnownHostsInDoubt = userInDoubt || globalInDoubt
	var inDoubt bool
	if c.RevokedHostKeys, inDoubt = c.files(w, s, "revokedhostkeys"); inDoubt {
		// ssh refuses every key if one of these files is missing, so we must if any is
		// missing that may be one of them
		c.RevokedHostKeys = appendMissing(c.RevokedHostKeys, strings.Split(s.get("revokedhostkeys"), " "))
	}
}

// takesOneRevokedFile reports whether ssh refuses a second file for RevokedHostKeys: the
// whole value is then the path of one, with any spaces in it. It is false if ssh cannot be
// run.
func takesOneRevokedFile(ctx context.Context, ssh program) bool {
	_, _, err := ssh.run(ctx, "-G", "-F", os.DevNull, "-o", "RevokedHostKeys=/a /b", "--", "localhost")
	var refused *exec.ExitError
	return ctx.Err() == nil && errors.As(err, &refused) && refused.ExitCode() == 255
}

// files returns the files that a value names, and whether that is in doubt. They are
// then all existing files that may be meant. For a detached process, which must refuse
// relative paths, those are included even if no such file exists where it runs, unless
// the value is ssh's default.
func (c *Config) files(w *userLines, s Settings, key string) (files []string, inDoubt bool) {
	value := s.Text(key)
	if value == "" {
		return nil, false
	}
	words := strings.Split(value, " ")
	if !ambiguous(words) {
		return expandTildes(words), false
	}
	if files = w.filesOf(c, key, value); files != nil {
		return files, false
	}
	relativeToo := w.options.Detached && c.filesIfPrinted(defaultFiles(key), value) == nil
	for i := range words {
		for end := len(words); end > i; end-- {
			path := joined(words[i:end])
			if (isFile(path) || relativeToo && isRelative(path)) && !slices.Contains(files, path) {
				files = append(files, path)
			}
		}
	}
	return files, true
}

// ambiguous reports whether the words that ssh -G prints may be anything but one file
// each. A word that does not begin a path may belong to the word before it; any other
// word may if the two together are a path in a directory that exists.
func ambiguous(words []string) bool {
	for i, word := range words {
		if word == "" || i > 0 && !beginsPath(word) {
			return true
		}
		for end := i + 2; end <= len(words); end++ {
			if _, err := os.Stat(filepath.Dir(joined(words[i:end]))); err == nil {
				return true
			}
		}
	}
	return false
}

// beginsPath reports whether a word can be a path by itself. It may begin with a ~ that
// ssh has not expanded.
func beginsPath(word string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(word), "/")
	return filepath.IsAbs(word) || word[0] == '~' || first == "" || first == "." || first == ".."
}

// appendMissing appends the first missing one of the files that the words may name.
func appendMissing(files, words []string) []string {
	for i := range words {
		for end := i + 1; end <= len(words); end++ {
			if path := joined(words[i:end]); !isFile(path) {
				return append(files, path)
			}
		}
	}
	return files
}

// joined is the path that the words are if they belong together.
func joined(words []string) string {
	return expandTildes([]string{strings.Join(words, " ")})[0]
}

// isFile is also true for a FIFO and a device.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// expandTildes leaves a path as it is if its user is not known: no such file exists.
func expandTildes(paths []string) []string {
	paths = slices.Clone(paths)
	for i, path := range paths {
		if expanded, err := ExpandTilde(path); err == nil {
			paths[i] = expanded
		}
	}
	return paths
}
