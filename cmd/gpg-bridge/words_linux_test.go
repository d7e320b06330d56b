//go:build linux

package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
)

// A wordsCase is a connection about which ssh says something.
type wordsCase struct {
	name   string
	args   []string // {NEW} is a file of known hosts that each run gets anew
	levels []string // all but VERBOSE, if there are none
	says   string   // what programs look for at INFO, so that the table can be read
}

// What ssh says, we say: the same lines at the same levels of LogLevel, and with -q, and the
// same status. Only lines of our own may be added, and these at ERROR and above.
func TestWordsEqualOpenSSH(t *testing.T) {
	h := newHostWith(t, sshd.Config{Options: []string{"AllowTcpForwarding no", "PasswordAuthentication no"}})
	dir := t.TempDir()
	stranger := sshkeys.Keygen(t, dir, "stranger", "-t", "ed25519")
	changed, revoked, list := filepath.Join(dir, "changed"), filepath.Join(dir, "revoked"), filepath.Join(dir, "list")
	name := "[127.0.0.1]:" + h.srv.Addr[strings.LastIndexByte(h.srv.Addr, ':')+1:]
	for file, text := range map[string]string{
		changed: name + " " + sshkeys.PublicLine(t, stranger+".pub"), revoked: "@revoked * " + h.srv.HostPublicKey, list: h.srv.HostPublicKey,
	} {
		require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	}
	own, err := os.ReadFile(h.srv.ConfigFile)
	require.NoError(t, err)
	other := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(other, bytes.ReplaceAll(own, []byte(h.srv.ClientKeyFile), []byte(stranger)), 0o600))
	closing, closed := closingServer(t), closedPort(t)
	// Cut when a key is offered.
	ending, broken := cutting(t, cuttingProxy{h.srv.Addr, 250, false}), cutting(t, cuttingProxy{h.srv.Addr, 250, true})
	alias := "-oHostKeyAlias=" + name
	few := []string{"ERROR", "INFO"}
	for _, c := range []wordsCase{
		{name: "accepted", args: []string{"-oStrictHostKeyChecking=accept-new", "-oUserKnownHostsFile={NEW}", "host", "true"}, levels: few,
			says: "Warning: Permanently added '" + name + "' (ED25519) to the list of known hosts."},
		{name: "changed", args: []string{"-oUserKnownHostsFile=" + changed, "host", "true"}, says: "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!"},
		{name: "unknown", args: []string{"-oUserKnownHostsFile={NEW}", "host", "true"}, says: "Host key verification failed."},
		{name: "not confirmed", args: []string{"-oStrictHostKeyChecking=ask", "-oUserKnownHostsFile={NEW}", "host", "true"}, says: "Host key verification failed.", levels: few},
		{name: "revoked", args: []string{"-oUserKnownHostsFile=" + revoked, "host", "true"}, says: "REVOKED HOST KEY DETECTED!", levels: few},
		{name: "in a list", args: []string{"-oRevokedHostKeys=" + list, "host", "true"}, says: " revoked by file ", levels: few},
		{name: "denied", args: []string{"-F", other, "host", "true"}, says: ": Permission denied (publickey)."},
		{name: "refused", args: []string{"-p", closed, "host", "true"}, says: "ssh: connect to host 127.0.0.1 port " + closed + ": Connection refused"},
		{name: "no such name", args: []string{"-oHostName=nowhere.invalid", "host", "true"}, says: "ssh: Could not resolve hostname nowhere.invalid: "},
		{name: "closed", args: []string{"-p", closing, "host", "true"}, says: "kex_exchange_identification: Connection closed by remote host"},
		{name: "closed at the log-in", args: []string{alias, "-p", ending, "host", "true"}, says: "Connection closed by 127.0.0.1 port " + ending},
		{name: "reset at the log-in", args: []string{alias, "-p", broken, "host", "true"}, says: "Connection reset by 127.0.0.1 port " + broken},
		{name: "a proxy that fails", args: []string{"-oProxyCommand=head -c 8 >/dev/null; exit 1", "host", "true"}, says: "Connection closed by UNKNOWN port 65535"},
		{name: "no cipher", args: []string{"-oCiphers=3des-cbc", "host", "true"}, says: "no matching cipher found. Their offer: ", levels: few},
		{name: "no forward", args: []string{"-R", "0:127.0.0.1:1", "host", "true"}, says: "Warning: remote port forwarding failed for listen port 0", levels: few},
		{name: "a port that is taken", args: []string{"-L", h.srv.Addr + ":x:1", "host", "true"}, says: "Could not request local forwarding.", levels: few},
		// cat: killed before it has read that our input has ended, sshd resets the connection.
		{name: "closed at once", args: []string{"host", "cat; kill -KILL $PPID"}, says: "Connection to 127.0.0.1 closed by remote host.", levels: []string{"QUIET", "INFO"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.levels == nil {
				c.levels = []string{"-q", "FATAL", "ERROR", "INFO"}
			}
			for _, level := range c.levels {
				theirs, ours := h.words(t, false, level, c), h.words(t, true, level, c)
				require.Equal(t, theirs.status, ours.status, level)
				var own []string
				said := slices.DeleteFunc(slices.Clone(ours.lines), func(line string) bool {
					isOwn := strings.HasPrefix(line, "gpg-bridge: ")
					if isOwn {
						own = append(own, line)
					}
					return isOwn
				})
				require.Equal(t, theirs.lines, said, "%s\n%s", level, strings.Join(own, "\n"))
				if level == "-q" || level == "QUIET" || level == "FATAL" {
					require.Empty(t, own, level)
				}
				if level == "INFO" {
					require.Contains(t, strings.Join(said, "\n"), c.says)
					require.NotEmpty(t, own)
				}
			}
		})
	}
}

// A said is what a run has said on stderr, and its status.
type said struct {
	status int
	lines  []string
}

// debians are the lines that Debian's ssh adds; our hint has the same command.
var debians = regexp.MustCompile(`(?m)^  remove with:\n  ssh-keygen .*\n`)

func (h *host) words(t *testing.T, ours bool, level string, c wordsCase) said {
	t.Helper()
	fresh := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(fresh, nil, 0o600))
	args := []string{"-oLogLevel=" + level}
	if level == "-q" {
		args = []string{level}
	}
	for _, arg := range c.args {
		args = append(args, strings.ReplaceAll(arg, "{NEW}", fresh))
	}
	cmd := h.command(t, ours, args...)
	cmd.Args = slices.DeleteFunc(cmd.Args, func(arg string) bool { return arg == "LogLevel=INFO" })
	cmd.Args = slices.DeleteFunc(cmd.Args, func(arg string) bool { return arg == "-o" })
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if failed := new(exec.ExitError); err != nil {
		require.True(t, errors.As(err, &failed), "%v", err)
	}
	text := debians.ReplaceAllString(lineEnds.ReplaceAllString(stderr.String(), "\n"), "")
	return said{cmd.ProcessState.ExitCode(), slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })}
}

// closingServer reads what clients send first and closes the connection. It returns its port.
func closingServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1000)) // else it is a reset
			_ = conn.Close()
		}
	}()
	return portOf(t, listener)
}

// closedPort is one where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return portOf(t, listener)
}

func portOf(t *testing.T, listener net.Listener) string {
	t.Helper()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}
