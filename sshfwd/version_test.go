package sshfwd

import (
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// greetingProxy is a proxy to a server that sends a text first.
func greetingProxy(t *testing.T, server, greeting string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = l.Close() })
	serving.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { greet(near, server, greeting) })
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}

func greet(near net.Conn, server, greeting string) {
	defer near.Close()
	_, _ = io.WriteString(near, greeting)
	far, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer far.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	})
	_, _ = io.Copy(near, far)
	_ = near.Close()
	up.Wait()
}

// What a server sends before its version is accepted or refused as by the real ssh, which
// has its limits in kex.h (SSH_MAX_BANNER_LEN, SSH_MAX_PRE_BANNER_LINES).
const (
	longestLine = 8192
	mostLines   = 1024
)

func TestLinesBeforeTheVersionAreAsWithSSH(t *testing.T) {
	t.Parallel()
	srv := sshd.Start(t, sshd.Config{})
	seen := map[bool]int{}
	for name, greeting := range map[string]string{
		"none":             "",
		"a line":           "welcome\r\n",
		"a long line":      strings.Repeat("x", 5000) + "\r\n",
		"the longest line": strings.Repeat("x", longestLine) + "\n",
		"a longer line":    strings.Repeat("x", longestLine+1) + "\n",
		"many lines":       strings.Repeat("line\r\n", mostLines-1),
		"too many lines":   strings.Repeat("line\r\n", mostLines),
		"NUL":              "we\x00come\r\n",
		"CR in a line":     "we\rcome\r\n",
		"SSH in a line":    "welcome to SSH-2.0-x\nSSH\n",
	} {
		port := greetingProxy(t, srv.Addr, greeting)
		options := []string{"Port=" + strconv.Itoa(port), "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"}
		args := []string{"host", "true"}
		for _, option := range options {
			args = append([]string{"-o", option}, args...)
		}
		out, sshErr := srv.SSH(args...).CombinedOutput()
		client, err := Dial(dialContext(t), resolved(t, srv, options...), DialOptions{Log: env.QuietLog()})
		if err == nil {
			_ = client.Close()
		}
		require.Equal(t, sshErr == nil, err == nil, "%s: %v, ssh: %s", name, err, out)
		seen[err == nil]++
	}
	require.Equal(t, map[bool]int{true: 6, false: 4}, seen)
}
