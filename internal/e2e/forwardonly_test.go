//go:build unix

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/env"
)

// -N with forwards of the user's opens them, whoever serves gpg on the host; when
// that ends, it serves gpg, too; and it stays when the bridge is taken down.
func TestForwardOnlyWithForwards(t *testing.T) {
	s := stage{}.set(t)
	b := s.background(t)
	first := s.bridge(t)
	port, socks, remote := freePort(t), freePort(t), freePort(t)
	second := s.start(t, "-N", "-L", port+":127.0.0.1:"+fmt.Sprint(s.sshd.Port), "-D", socks,
		"-R", "127.0.0.1:"+remote+":127.0.0.1:"+fmt.Sprint(s.sshd.Port), "host")
	works := func(port string) func() bool {
		return func() bool {
			conn, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				return false
			}
			defer conn.Close()
			greeting := make([]byte, 4)
			n, _ := conn.Read(greeting)
			return string(greeting[:n]) == "SSH-"
		}
	}
	listens := func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+socks)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	eventually(t, works(port), "-L does not work")
	eventually(t, works(remote), "-R does not work")
	eventually(t, listens, "-D does not listen")
	second.waitFor(t, &second.stderr, "already serves gpg on host")
	s.sign(t)

	s.end(t, first)
	second.waitFor(t, &second.stderr, serving)
	s.sign(t)
	require.True(t, works(port)())
	b.down(t, "--all")
	s.requireNoSocket(t)
	require.True(t, works(port)(), "it was not the bridge's")
	second.signal(t, syscall.SIGTERM)
	require.Zero(t, second.wait(t).code)
}

// One that waits for its user to answer a question is not the bridge yet.
func TestForwardOnlyAtAPrompt(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	line := program
	for _, arg := range s.args("-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=ask", "-o", "BatchMode=no", "-N", "host") {
		line += " '" + arg + "'"
	}
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	asks := launchAs(t, exec.Command(env.Tool(t, "script"), "-qec", line, "/dev/null"), s.laptop, in)
	asks.waitFor(t, &asks.stdout, "fingerprint")
	r := s.runSigning(t)
	require.Empty(t, r.stderr)
	asks.signal(t, syscall.SIGTERM)
	<-asks.ended
}

// One that has lost its connection is seen to wait, makes way for a session that has
// one, and is taken down without.
func TestForwardOnlyBetweenTwoConnections(t *testing.T) {
	s := stage{}.set(t)
	b := s.background(t)
	p := s.bridge(t)
	s.sshd.Stop()
	waiting := b.await(t, func(status share.Status) bool { return status.State == share.Waiting })
	require.Equal(t, p.cmd.Process.Pid, waiting.PID)
	require.NotNil(t, waiting.Problem)
	s.sshd.Restart()
	eventually(t, func() bool { return strings.Count(p.stderr.String(), serving) == 2 }, "it does not serve again")
	s.sign(t)
	s.sshd.Stop()
	b.await(t, func(status share.Status) bool { return status.State == share.Waiting })
	b.down(t, "--all")
	require.Zero(t, p.wait(t).code)
}
