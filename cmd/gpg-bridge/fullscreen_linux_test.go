package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// controls are the sequences with which a program for a vt100 moves about.
var controls = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][0-9A-B]|\x1b[=>78DM]|[\x0e\x0f\x00]`)

// drawn returns the lines of top's last drawing after the offset, at their full width.
func (s *screen) drawn(offset int) []string {
	text := controls.ReplaceAllString(lineEnds.ReplaceAllString(s.text()[offset:], "\n"), "")
	return strings.Split(text[max(0, strings.LastIndex(text, "top - ")):], "\n")
}

// A program that draws the whole screen again and again is usable: it starts,
// draws for the new size of the window, and ends with a key.
func TestTopOnTheHost(t *testing.T) {
	top := env.Tool(t, "top")
	h := newHost(t)
	s := onScreen(t, h.command(t, true, "-t", "host", top+" -d 60"))
	before := s.modes()
	offset := 0
	for _, size := range []struct{ rows, cols uint16 }{{33, 91}, {20, 60}, {40, 100}} {
		resize(t, s, size.rows, size.cols) // the first is the size it has
		eventually(t, "a screen of the size", func() bool {
			lines, widest := s.drawn(offset), 0
			for _, line := range lines {
				widest = max(widest, len([]rune(line)))
			}
			return len(lines) == int(size.rows) && widest <= int(size.cols) && widest > int(size.cols)/2 && strings.HasPrefix(lines[0], "top - ")
		})
		eventually(t, "raw mode", s.isRaw)
		offset = len(s.text())
	}
	s.keys("q")
	status, _ := s.waitKeepingModes(before)
	require.Zero(t, status)
}

func TestPagerOnTheHost(t *testing.T) {
	less := env.Tool(t, "less")
	h := newHost(t)
	file := filepath.Join(env.ShortDir(t), "text")
	var text strings.Builder
	for n := range 200 {
		fmt.Fprintf(&text, "line %d\n", n+1)
	}
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	s := onScreen(t, h.command(t, true, "-t", "host", "LESS= LESSHISTFILE=- "+less+" "+file))
	before := s.modes()
	s.expect("line 32", 1)
	eventually(t, "raw mode", s.isRaw)
	offset := len(s.text())
	resize(t, s, 20, 60)
	eventually(t, "another screen", func() bool { return strings.Contains(s.text()[offset:], "line 19") })
	s.keys(" =")
	s.expect("lines 20-38/200", 1)
	s.keys("q")
	status, _ := s.waitKeepingModes(before)
	require.Zero(t, status)
}
