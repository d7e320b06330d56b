package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// Each flag has the effect that it has with ssh, in whatever place: the same output and status
// beside the real ssh, and the same words where they are ssh's.
func TestFlagsHaveTheEffectTheyHaveWithSSH(t *testing.T) {
	h := newHost(t)
	port := strconv.Itoa(h.srv.Port)
	const client = "echo ${SSH_CLIENT%% *}"
	for _, test := range []struct {
		args  []string
		stdin string
		words bool // stderr is the same, too
	}{
		{args: []string{"-4", "host", client}, words: true},
		{args: []string{"-6", "host", client}},
		{args: []string{"-46", "host", client}},
		{args: []string{"-b", "127.0.0.2", "host", client}, words: true},
		{args: []string{"-b127.0.0.2", "-b", "127.0.0.3", "host", client}, words: true},
		{args: []string{"-b", "192.0.2.1", "host", client}},
		{args: []string{"-B", "lo", "host", client}},
		{args: []string{"-B", "nosuch0", "host", client}},
		{args: []string{"-2xak", "host", client}, words: true},
		{args: []string{"-1", "host", client}, words: true},
		{args: []string{"-c", "aes256-ctr", "host", client}, words: true},
		{args: []string{"-c", "no-cipher", "host", client}, words: true},
		{args: []string{"-m", "hmac-sha2-512", "-c", "aes128-ctr", "host", client}, words: true},
		{args: []string{"-m", "no-mac", "host", client}, words: true},
		{args: []string{"-e", "nonsense", "host"}, words: true},
		{args: []string{"-p", port, "-p", "1", "host", client}, words: true},
		{args: []string{"-p", "1", "-p", port, "host", client}},
		{args: []string{"-oPort=1", "-p", port, "host", client}},
		{args: []string{"host", "-p", port, "-oPort=1", client}, words: true},
		{args: []string{"-p", "x", "host"}, words: true},
		{args: []string{"-p0", "host"}, words: true},
		{args: []string{"-oUser=nobody-here", "root@host", "-lroot", client}},
		{args: []string{"-Nj", "host"}},
		{args: []string{"-E", "/nonexistent/file", "host"}, words: true},
		{args: []string{"-yE", "/dev/null", "host"}, words: true},
		{args: []string{"-i", "/nonexistent/key", "host", client}, words: true},
		{args: []string{"-oFrobnicate=yes", "host"}, words: true},
		{args: []string{"-oPort", "host"}, words: true},
		{args: []string{"-q", "-F", "/nonexistent/file", "host"}, words: true},
		{args: []string{"-J", "a", "-J", "b", "host"}, words: true},
		{args: []string{"-L", "nonsense", "host"}, words: true},
		{args: []string{"-Ns", "host", "x"}, words: true},
		{args: []string{"-oStdinNull=yes", "host", "cat"}, stdin: "not read", words: true},
		{args: []string{"-nT", "host"}, stdin: "echo not read", words: true},
		{args: []string{"-qn", "host", "cat; exit 7"}, stdin: "not read", words: true},
		{args: []string{"-ttq", "host", "test -t 0"}, words: true},
		{args: []string{"-oBatchMode=yes", "--", "host", "-p", "1"}, words: true},
		{args: []string{"host", "-qT", "--", "-p", "1"}, words: true},
		// What the user's own ssh does itself.
		{args: []string{"-V"}, words: true},
		{args: []string{"-Q", "cipher"}, words: true},
		{args: []string{"-Q", "nonsense"}, words: true},
		{args: []string{"-G", "-lx", "host", "-p", "7", "true"}, words: true},
		{args: []string{"host", "-G"}},
		{args: []string{"-W", "127.0.0.1:1", "host"}},
		{args: []string{"-O", "check", "-S", "/nonexistent", "host"}, words: true},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			run := func(ours bool) ending {
				end := runPlainly(t, h.command(t, ours, test.args...), test.stdin, 0)
				if !test.words {
					end.stderr = ""
				}
				return end
			}
			require.Equal(t, run(false), run(true))
		})
	}
}

// -E takes what ssh logs, and nothing else; stderr has the rest.
func TestMessagesInAFile(t *testing.T) {
	h := newHost(t)
	for _, args := range [][]string{
		{"-tt", "host", "echo err >&2; exit 3"},
		{"host", "echo err >&2"},
		{"-T", "host"},
		{"host"},
	} {
		stdin := "echo err >&2; exit 3\n"
		if args[0] == "-tt" { // its terminal would echo that, before or after the command's output
			stdin = ""
		}
		var texts, errs [2]string
		for i, ours := range []bool{false, true} {
			file := filepath.Join(env.ShortDir(t), "log")
			for range 2 { // the second appends
				end := runPlainly(t, h.command(t, ours, append([]string{"-E", file}, args...)...), stdin, 0)
				errs[i] += end.stdout + "|" + end.stderr + "|" + strconv.Itoa(end.status)
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			texts[i] = plain(string(text))
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
		}
		require.Equal(t, errs[0], errs[1], args)
		require.Equal(t, texts[0], texts[1], args)
	}

	file := filepath.Join(env.ShortDir(t), "log")
	cmd := h.command(t, true, "-E", file, "-v", "-p", "1", "host", "true")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.Equal(t, 255, exitStatus(t, cmd.Run()))
	require.Empty(t, stderr.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "debug1: Reading configuration data")
	require.Contains(t, string(text), ": Connection refused")
}
