package main

import (
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

var (
	levelWords = regexp.MustCompile(`~[vV] \[LogLevel \w+\]|commandline disabled`)
	helpLine   = regexp.MustCompile(`(?m)^ ~(\S+) +- (.*)\r$`)
)

// Escape sequences say what ssh's say; the help lists those that there are, in ssh's words.
func TestEscapesSpeakAsWithSSH(t *testing.T) {
	h := newHost(t)
	run := func(ours bool) (said []string, help map[string]string) {
		s := onScreen(t, h.command(t, ours, "-t", "host", "stty -echo; echo rea''dy; cat"))
		s.expect("ready", 1)
		eventually(t, "raw mode", s.isRaw)
		s.keys("~?~C~v~v~v~v~v~V~V~V~V~V~V~V~V~v~v~v~v")
		s.expect("~v [LogLevel VERBOSE]", 2)
		s.keys("~.")
		_, text := s.wait()
		help = make(map[string]string)
		for _, line := range helpLine.FindAllStringSubmatch(text, -1) {
			help[line[1]] = line[2]
		}
		return levelWords.FindAllString(text, -1), help
	}
	theirs, theirHelp := run(false)
	ours, ourHelp := run(true)
	require.Equal(t, theirs, ours)
	for _, missing := range []string{"R", "&"} {
		require.Contains(t, theirHelp, missing)
		delete(theirHelp, missing)
	}
	for _, inOurWords := range []string{".", "^Z"} {
		require.Contains(t, ourHelp, inOurWords)
		theirHelp[inOurWords] = ourHelp[inOurWords]
	}
	require.Equal(t, theirHelp, ourHelp)
}

// ~# lists what is open, and only as long as it is.
func TestEscapeListsConnections(t *testing.T) {
	h := newHost(t)
	near := filepath.Join(env.ShortDir(t), "near")
	for _, ours := range []bool{false, true} {
		s := onScreen(t, h.command(t, ours, "-o", "StreamLocalBindUnlink=yes", "-L", near+":127.0.0.1:"+strconv.Itoa(h.srv.Port),
			"-t", "host", "stty -echo; echo rea''dy; cat"))
		s.expect("ready", 1)
		eventually(t, "raw mode", s.isRaw)
		conn, err := net.Dial("unix", near)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 8)) // of sshd's first words
		require.NoError(t, err)
		listed := func() bool {
			before := strings.Count(s.text(), "are open:")
			s.keys("~#")
			s.expect("are open:", before+1)
			s.keys("~B") // comes behind the list
			s.expect("~B", before+1)
			list := s.text()[strings.LastIndex(s.text(), "are open:"):]
			require.Contains(t, list, " client-session (")
			return strings.Contains(list, "direct-tcpip")
		}
		require.True(t, listed())
		require.NoError(t, conn.Close())
		eventually(t, "the end of the connection", func() bool { return !listed() })
		s.keys("~.")
		s.wait()
	}
}
