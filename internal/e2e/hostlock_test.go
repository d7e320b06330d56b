//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/release"
)

// lockedKeyring is a scene whose host has a keyring that another machine has
// locked, as it stays behind on a home directory in a network. Where there is no
// keyring yet gpg waits when it lists the keys, else when it imports some.
func lockedKeyring(t *testing.T, exists bool) *scene {
	s := stage{}.set(t)
	if exists {
		s.host.Run(t, "gpg --batch --list-keys 2>&1")
	}
	s.host.WriteFile(t, ".gnupg/pubring.kbx.lock", []byte("      4711\nelsewhere\n"), 0o600)
	return s
}

// namesTheLock is what is said of it.
func (s *scene) namesTheLock() string {
	return fmt.Sprintf("process 4711 of %q holds %q", "elsewhere", s.host.Path(".gnupg/pubring.kbx.lock"))
}

// helpers are the programs that the preparation has running on the host, by name.
func (s *scene) helpers() []string {
	var found []string
	for _, pid := range s.host.Processes() {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if name := strings.TrimSpace(string(name)); slices.Contains([]string{"sh", "gpg", "sed", "sleep"}, name) {
			found = append(found, name)
		}
	}
	return found
}

// requireNothingLeft: neither a process nor a file of a gpg that waited.
func (s *scene) requireNothingLeft(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return len(s.helpers()) == 0 }, "the preparation left something behind")
	left, err := filepath.Glob(s.host.Path(".gnupg/.#lk*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A gpg on the host that waits for a lock for ever delays no session, is ended,
// and the user is told once who holds the lock.
func TestSessionOnALockedKeyring(t *testing.T) {
	s := lockedKeyring(t, true)
	start := time.Now()
	p := s.start(t, "host", "echo on the host; exec cat")
	p.waitFor(t, &p.stdout, "on the host")
	require.Less(t, time.Since(start), 9*time.Second, "it waited for the import's end")
	p.waitFor(t, &p.stderr, s.namesTheLock())
	s.requireNothingLeft(t)
	p.signal(t, syscall.SIGTERM)
	r := p.wait(t)
	require.Equal(t, 1, strings.Count(r.stderr, s.namesTheLock()), "%q", r.stderr)
	require.LessOrEqual(t, len(r.messages(t)), 4, "at most one other on a slow machine: %q", r.stderr)
	s.requireNoSocket(t)
}

// A session that ends first takes the import along, and says so.
func TestShortSessionOnALockedKeyring(t *testing.T) {
	s := lockedKeyring(t, false)
	r := s.run(t, "host", "echo on the host; exit 7")
	require.Equal(t, 7, r.code)
	require.Equal(t, "on the host\n", r.stdout)
	require.Contains(t, r.stderr, "gpg --list-keys on the host hangs")
	eventually(t, func() bool { return len(s.helpers()) == 0 }, "the preparation left something behind")
}

// A bridge is up when its socket answers; what is missing is its problem.
func TestBackgroundOnALockedKeyring(t *testing.T) {
	b := lockedKeyring(t, true).background(t)
	b.up(t)
	require.Equal(t, "OK\n", dial(t, b.socket(t)).ask(t, "GETINFO restricted\n"))
	status := b.await(t, func(s share.Status) bool { return s.Problem != nil })
	require.Equal(t, share.Up, status.State)
	require.Contains(t, status.Problem.Text, b.namesTheLock())
	require.NotEmpty(t, status.Problem.Remedy)
	b.requireNothingLeft(t)
	require.NoError(t, os.Remove(b.host.Path(".gnupg/pubring.kbx.lock")))
	b.down(t, "--all")
	b.up(t)
	b.sign(t)
}

// Nothing stays on the host of a gpg-bridge that was killed.
func TestKilledOnALockedKeyring(t *testing.T) {
	s := lockedKeyring(t, true)
	p := s.start(t, "host", "echo on the host; exec cat")
	eventually(t, func() bool { return slices.Contains(s.helpers(), "gpg") }, "gpg does not wait")
	p.waitFor(t, &p.stdout, "on the host")
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
	s.requireNothingLeft(t)
	eventually(t, func() bool { return len(s.host.Processes()) == 0 }, "something is left")
}

// What hangs is named, and it is not said that no shell runs.
func TestHungKeyListingOnTheHost(t *testing.T) {
	s, host := withShims(t)
	host.put(t, map[string]string{
		"gpg":     `case "$*" in *--list-*) exec sleep 600;; *) exec "$real/gpg" "$@";; esac`,
		"gpgconf": `exec "$real/gpgconf" "$@"`,
	})
	s.requireTold(t, "gpg --list-keys on the host hangs", "run it on the host")
}

// A database that another program has locked: what gpg says of it counts, and not
// the summary behind it.
func TestLockedKeyDatabaseOnTheHost(t *testing.T) {
	s, host := withShims(t)
	host.put(t, map[string]string{
		"gpg": `case "$*" in
*--list-*) echo 'gpg: keydb_search_first failed: SQL database file is locked' >&2; exit 2 ;;
*--import*)
	cat >/dev/null
	echo "gpg: import from '[stdin]' failed: SQL database file is locked" >&2
	case "$*" in *--quiet*) ;; *) echo 'gpg: Total number processed: 0' >&2 ;; esac
	exit 2 ;;
*) exec "$real/gpg" "$@" ;;
esac`,
		"gpgconf": `exec "$real/gpgconf" "$@"`,
	})
	s.requireTold(t, "SQL database file is locked", "import them yourself")
}

// keyboxd waits for a lock of another machine, and every gpg for keyboxd.
func TestLockedKeyboxdOnTheHost(t *testing.T) {
	t.Parallel()
	s := newSkew(t, "cert,sign", "", release.Inside(t, release.Suites()[0]))
	s.host.WriteFile(t, ".gnupg/common.conf", []byte("use-keyboxd\n"), 0o600)
	s.host.WriteFile(t, ".gnupg/public-keys.d/pubring.db.lock", []byte("      4711\nelsewhere\n"), 0o600)
	s.requireTold(t, "gpg --list-keys on the host hangs; process 4711", "remove the lock")
}

// requireTold: a session begins, and its user is told one thing.
func (s *scene) requireTold(t *testing.T, text, advice string) {
	t.Helper()
	p := s.start(t, "host", "echo on the host; exec cat")
	p.waitFor(t, &p.stdout, "on the host")
	p.waitFor(t, &p.stderr, text)
	p.signal(t, syscall.SIGTERM)
	r := p.wait(t)
	require.Equal(t, 1, strings.Count(r.stderr, text), "%q", r.stderr)
	require.Contains(t, r.stderr, advice)
	require.LessOrEqual(t, len(r.messages(t)), 4, "at most one other on a slow machine: %q", r.stderr)
	require.NotContains(t, r.stderr, "no shell commands")
	s.requireNoSocket(t)
}
