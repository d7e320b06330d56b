package e2e

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const loginHome = "xdg Zoe/gnupg"

// elsewhere is a scene in which only a login shell on the host sets GNUPGHOME.
func elsewhere(t *testing.T) *scene {
	t.Helper()
	s := stage{}.set(t)
	s.host.Mkdir(t, loginHome)
	s.host.WriteFile(t, ".profile", []byte("echo >>~/logins\nexport GNUPGHOME=\"$HOME/"+loginHome+"\"\n"), 0o600)
	return s
}

// Gpg in a login shell has a home of its own: it is served there, and gpg of a
// command where that looks. Both have the keys, and nothing is left behind.
func TestLoginShellWithAHomeOfItsOwn(t *testing.T) {
	s := elsewhere(t)
	login := strings.TrimSpace(s.host.Run(t, "bash -lc 'gpgconf --list-dirs agent-socket'"))
	require.NotEqual(t, s.socket(t), login)
	p := s.bridge(t)
	p.waitFor(t, &p.stderr, "your agent serves both")
	require.Contains(t, p.stderr.String(), "gpg in a login shell on host looks at "+login)
	s.sign(t)
	signature, said, err := s.onHost(nil, "bash", "-lc", s.signing())
	require.NoError(t, err, "%s", said)
	s.verify(t, signature, "hello\n")
	require.Empty(t, s.agents(), "the host has started none")
	p.signal(t, syscall.SIGTERM)
	r := p.wait(t)
	require.Zero(t, r.code, "%s", r.stderr)
	require.Len(t, strings.Split(r.stderr, "\n"), 3, "%s", r.stderr)
	s.requireNoSocket(t)
	require.NoFileExists(t, login)
}

// A shell session is told once. A command has no start-up files run beside it.
func TestSessionWithALoginHomeOfItsOwn(t *testing.T) {
	s := elsewhere(t)
	r := s.runSigning(t)
	require.Empty(t, r.stderr)
	_, err := os.Stat(s.host.Path("logins"))
	require.ErrorIs(t, err, os.ErrNotExist)

	script := "until gpg --batch --no-autostart -k " + s.key.Fingerprint + " >/dev/null 2>&1 && [ -S \"$(gpgconf --list-dirs agent-socket)\" ]; " +
		"do sleep .1; done; " + s.signing() + "\n"
	for _, told := range []bool{true, false} {
		in, w := io.Pipe()
		p := launch(t, s.laptop, in, s.args("host")...)
		_, err := io.WriteString(w, script)
		require.NoError(t, err)
		if told {
			p.waitFor(t, &p.stderr, "your agent serves both")
		}
		require.NoError(t, w.Close())
		r := p.wait(t)
		require.Zero(t, r.code, "%s", r.stderr)
		s.verify(t, []byte(r.stdout), "hello\n")
		require.Equal(t, told, strings.Contains(r.stderr, "your agent serves both"), r.stderr)
	}
	require.Empty(t, s.agents())
}

// logins counts how often the host's start-up files have run.
func (s *scene) logins(t *testing.T) int {
	t.Helper()
	return strings.Count(string(s.host.ReadFile(t, "logins")), "\n")
}

// The start-up files run once for all bridges, and again with --takeover.
func TestLoginShellIsAskedOnce(t *testing.T) {
	s := elsewhere(t)
	for _, more := range []struct {
		args   []string
		logins int
	}{{nil, 1}, {nil, 1}, {[]string{"--takeover"}, 2}, {nil, 2}} {
		p := s.bridge(t, more.args...)
		p.waitFor(t, &p.stderr, "your agent serves both")
		require.Equal(t, more.logins, s.logins(t))
		p.signal(t, syscall.SIGTERM)
		require.Zero(t, p.wait(t).code)
	}
	// A home that is gone is not made again. A session is told once.
	s.host.Run(t, "rm -r 'xdg Zoe'")
	for _, told := range []bool{true, false} {
		p := s.start(t, "-v", "host")
		p.waitFor(t, &p.stderr, "level=INFO msg=\"the GNUPGHOME of the login shell")
		if told {
			p.waitFor(t, &p.stderr, "gpg-bridge: make that directory on the host")
		}
		p.signal(t, syscall.SIGTERM)
		r := p.wait(t)
		require.Equal(t, told, strings.Contains(r.stderr, "warning: the GNUPGHOME of the login shell"), r.stderr)
	}
	require.NoDirExists(t, s.host.Path(loginHome))
	require.LessOrEqual(t, s.logins(t), 6, "those of the sessions, and whether it is still the login shell's home")
}

// A remembered home that is gone, and that the login shell does not set any more, is
// forgotten, and no complaint.
func TestLoginHomeThatIsNoneAnyMore(t *testing.T) {
	s := elsewhere(t)
	p := s.bridge(t)
	p.waitFor(t, &p.stderr, "your agent serves both")
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t).code)
	s.host.Run(t, "rm -r 'xdg Zoe'")
	s.host.WriteFile(t, ".profile", []byte("echo >>~/logins\n"), 0o600)
	for range 2 {
		p := s.bridge(t, "-vv")
		p.waitFor(t, &p.stderr, "gpg in a login shell is not served elsewhere")
		s.sign(t)
		p.signal(t, syscall.SIGTERM)
		r := p.wait(t)
		require.Zero(t, r.code)
		require.NotContains(t, r.stderr, "warning")
		require.Equal(t, 2, s.logins(t))
	}
}

// Start-up files that take too long are not run again to be told the same, and the
// user knows.
func TestLoginShellThatIsSlow(t *testing.T) {
	s := stage{}.set(t)
	s.host.WriteFile(t, ".profile", []byte("echo >>~/logins\nexport GNUPGHOME=~/elsewhere\nsleep 605\n"), 0o600)
	for range 2 {
		p := s.bridge(t)
		p.waitFor(t, &p.stderr, "warning: the login shell on the host did not answer within 5 s")
		p.waitFor(t, &p.stderr, "gpg-bridge: if its start-up files set GNUPGHOME")
		require.Equal(t, 1, s.logins(t))
		s.sign(t)
		p.signal(t, syscall.SIGTERM)
		require.Zero(t, p.wait(t).code)
	}
}
