//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshd"
)

// slowly has the first shell of a connection to the host, the preparation's, take longer
// than a session waits, and the second, the session's own, until the path is served: with
// the same file it would take as long, from later on.
func (s *scene) slowly(t *testing.T) {
	t.Helper()
	s.importKey(t)
	s.host.WriteFile(t, ".bashrc", []byte(`seen=~/"$SSH_CONNECTION"
if mkdir "$seen" 2>/dev/null; then sleep 2.5
elif mkdir "$seen/again" 2>/dev/null; then until [ -S "`+s.socket(t)+`" ]; do sleep 0.1; done; sleep 1
fi
`), 0o600)
	s.host.WriteFile(t, ".bash_profile", []byte(". ~/.bashrc; echo the shell; exit 0\n"), 0o600)
}

// A start-up file that is slow delays the bridge no more than the session: nothing is
// said, for gpg works when somebody can use it. What sshd itself says at the log-in is
// no output of the session.
func TestSlowStartUpFile(t *testing.T) {
	s := stage{sshd: sshd.Config{Options: []string{"PrintMotd yes"}}}.set(t)
	s.slowly(t)
	t.Run("command", func(t *testing.T) { require.Empty(t, s.runSigning(t).stderr) })
	t.Run("shell", func(t *testing.T) {
		r := s.run(t, "-tt", "-o", "LogLevel=ERROR", "host")
		require.Zero(t, r.code, "%s", r.stderr)
		require.Empty(t, r.stderr)
		before, _, found := strings.Cut(r.stdout, "the shell")
		require.True(t, found, "%q", r.stdout)
		require.NotEmpty(t, strings.TrimSpace(before), "sshd says something before the shell does")
	})
}

// A bridge that is late is told of although the session says nothing, while it runs and
// at its end.
func TestBridgeThatIsLateBesideASilentSession(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	s.stopAgent(t)
	r := s.run(t, "host", "exit 7")
	require.Equal(t, 7, r.code)
	r.requireWarning(t, "gpg on the host cannot be used yet: GPG on this machine does not answer", "gpgconf")

	p := s.start(t, "host", "read line")
	p.waitFor(t, &p.stderr, "gpg on the host cannot be used yet: GPG on this machine does not answer")
	p.signal(t, syscall.SIGTERM)
	require.Len(t, p.wait(t).messages(t), 2, "once")
}

// One that fails beside the session says what has failed.
func TestBridgeThatFailsLate(t *testing.T) {
	s, host := withShims(t)
	s.host.WriteFile(t, ".bashrc", []byte("mkdir ~/first 2>/dev/null && sleep 2.5\n"), 0o600)
	host.put(t, map[string]string{"gpg": "exit 2", "gpgconf": "exit 2"})
	p := s.start(t, "host", "read line")
	p.waitFor(t, &p.stderr, "\ngpg-bridge: ")
	p.signal(t, syscall.SIGTERM)
	p.wait(t).requireWarning(t, "gpgconf names none", "2.1 or later")
}

// A distance is a link to the host, through a relay that delivers everything so much
// later.
type distance struct{ oneWay atomic.Int64 }

// distant is the flags that lead to the host over that link.
func (s *scene) distant(t *testing.T, d *distance) []string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", s.sshd.Addr)
			if err != nil {
				_ = near.Close()
				continue
			}
			running.Go(func() { d.carry(far, near) })
			running.Go(func() { d.carry(near, far) })
		}
	})
	port := listener.Addr().(*net.TCPAddr).Port
	return []string{"-o", fmt.Sprint("Port=", port), "-o", fmt.Sprintf("HostKeyAlias=[%s]:%d", s.sshd.Host, s.sshd.Port)}
}

// carry brings what one end says to the other, until one of them closes.
func (d *distance) carry(to, from net.Conn) {
	type part struct {
		data []byte
		due  time.Time
	}
	parts := make(chan part, 1024)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		defer close(parts)
		for buf := make([]byte, 64<<10); ; {
			n, err := from.Read(buf)
			parts <- part{bytes.Clone(buf[:n]), time.Now().Add(time.Duration(d.oneWay.Load()))}
			if err != nil {
				return
			}
		}
	})
	for p := range parts {
		<-time.After(time.Until(p.due))
		_, _ = to.Write(p.data)
	}
	_, _ = to.Close(), from.Close()
}

// On a slow link a session waits for the round trips that its bridge takes: gpg works in
// the first command. The link is fast from then on, for the test's time.
func TestSlowLink(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	var link distance
	link.oneWay.Store(int64(450 * time.Millisecond))
	p := s.start(t, append(s.distant(t, &link), "host", "echo there >&2; "+s.signing())...)
	p.waitFor(t, &p.stderr, "there")
	link.oneWay.Store(0)
	r := p.wait(t)
	require.Zero(t, r.code, "%s", r.stderr)
	require.Equal(t, "there\n", r.stderr)
	s.verify(t, []byte(r.stdout), "hello\n")
}

// It waits no longer than that where the host hangs.
func TestSlowLinkToAHostThatHangs(t *testing.T) {
	s, host := withShims(t)
	host.put(t, map[string]string{"gpg": "exec sleep 600", "gpgconf": "exec sleep 600"})
	var link distance
	link.oneWay.Store(int64(300 * time.Millisecond))
	p := s.start(t, append(s.distant(t, &link), "host", "echo there")...)
	p.waitFor(t, &p.stdout, "there")
	link.oneWay.Store(0)
	p.wait(t).requireWarning(t, "gpg on the host cannot be used yet: the host is not ready yet", "gpg --list-keys")
}

// The end of a plain ssh does not wait for a bridge that hangs, whoever reads what it says
// to the end.
func TestEndOfSSHBesideAStoppedBridge(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	took := func() time.Duration {
		began := time.Now()
		require.Zero(t, p.ssh(t, "dev", "true").wait(t).code)
		return time.Since(began)
	}
	p.endSession(t, p.session(t))
	healthy := min(took(), took(), took())
	stop(t, p.awaitUp(t).PID)
	var last time.Duration
	for range 8 { // the machine is busy for some of them
		if last = took(); last < healthy+500*time.Millisecond {
			return
		}
	}
	require.Less(t, last, healthy+500*time.Millisecond)
}
