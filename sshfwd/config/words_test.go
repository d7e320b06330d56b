package config

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

func TestSplitArguments(t *testing.T) {
	for s, want := range map[string][]string{
		"":                   nil,
		"  ":                 nil,
		"a b\tc":             {"a", "b", "c"},
		`a "b c" 'd "e'`:     {"a", "b c", `d "e`},
		`a\ b \"x\" \n "\'"`: {"a b", `"x"`, `\n`, "'"},
		`"" x`:               {"", "x"},
		`a"b"c`:              {"abc"},
		`'it\'s'`:            {"it's"},
		`a\`:                 {`a\`},
	} {
		got, err := SplitArguments(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	_, err := SplitArguments(`a "b`)
	require.Error(t, err)
}

// A line means what it means to the real ssh, which prints the same words, or does not
// print the keyword at all.
func TestSplitLineIsOpenSSHs(t *testing.T) {
	t.Parallel()
	ssh := env.Tool(t, "ssh")
	for line, want := range map[string]string{
		"UserKnownHostsFile k1 kx":              "k1 kx",
		`"UserKnownHostsFile" k1 kx`:            "k1 kx",
		`"UserKnownHostsFile"k1 kx`:             "k1 kx",
		`"UserKnownHostsFile"=k1 kx`:            "=k1 kx",
		`""UserKnownHostsFile k1 kx`:            "k1 kx",
		`"" UserKnownHostsFile k1 kx`:           "k1 kx",
		`User"KnownHostsFile" k1 kx`:            "k1 kx",
		` "UserKnownHostsFile k1 kx`:            "",
		"=UserKnownHostsFile k1":                "k1",
		"UserKnownHostsFile = k1":               "k1",
		"UserKnownHostsFile==k1":                "=k1",
		"UserKnownHostsFile= =k1":               "=k1",
		"\r\n UserKnownHostsFile\rk1 kx \f\r\n": "k1 kx",
		"UserKnownHostsFile k1 #kx":             "k1",
		"UserKnownHostsFile k1 kx # don't":      "k1 kx",
		`UserKnownHostsFile "#k1" kx#y`:         "#k1 kx#y",
		"#UserKnownHostsFile k1 kx":             "",
	} {
		out, err := exec.Command(ssh, "-G", "-F", "none", "-o", line, "host").Output()
		require.NoError(t, err, "%q", line)
		theirs := parseSettings(out).get("userknownhostsfile")
		if strings.Contains(theirs, "known_hosts") { // ssh's default
			theirs = ""
		}
		require.Equal(t, want, theirs, "ssh, of %q", line)
		keyword, start, words, err := SplitLine(line)
		require.NoError(t, err, "%q", line)
		require.Equal(t, want != "", keyword == "userknownhostsfile", "%q", line)
		require.Equal(t, want, strings.Join(words, " "), "%q", line)
		if keyword == "" {
			continue
		}
		again, err := splitArguments(strings.TrimRight(line[start:], lineSpace+"\f"), true)
		require.NoError(t, err, "%q", line)
		require.Equal(t, words, again, "%q", line)
	}
}
