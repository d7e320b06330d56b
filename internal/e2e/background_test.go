//go:build unix

package e2e

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/env"
)

// The life of a bridge in the background.
func TestBackground(t *testing.T) {
	b := stage{}.set(t).background(t)
	r := b.do(t, "status")
	r.requireOK(t)
	require.Equal(t, "no bridges\n", r.stdout)
	require.Empty(t, b.status(t))

	start := time.Now()
	b.up(t)
	first := b.status(t)[0]
	require.Equal(t, share.Up, first.State)
	require.Equal(t, share.Background, first.Kind)
	require.True(t, first.Pinned)
	require.Equal(t, "host", first.Target)
	require.Equal(t, b.socket(t), first.RemoteSocket)
	require.Equal(t, b.extraSocket(t), first.Agent)
	require.WithinRange(t, first.Since, start, time.Now())
	require.Nil(t, first.LastOperation)
	require.Nil(t, first.Problem)
	require.Equal(t, []int{first.PID}, b.pids())
	b.up(t) // is already
	require.Equal(t, first.PID, b.status(t)[0].PID)

	b.sign(t)
	signed := b.await(t, func(s share.Status) bool { return s.Sessions == 0 && s.LastOperation != nil })
	require.Equal(t, "PKSIGN", signed.LastOperation.Verb)
	require.Equal(t, share.OutcomeOK, signed.LastOperation.Outcome)
	require.Equal(t, b.key.Keygrip, signed.LastOperation.Key)
	require.WithinRange(t, signed.LastOperation.At, start, time.Now())
	require.NotZero(t, signed.SessionsTotal)

	b.sshd.Stop()
	lost := b.await(t, func(s share.Status) bool { return s.State == share.Waiting })
	require.NotEmpty(t, lost.Problem.Text)
	require.NotEmpty(t, lost.Problem.Remedy)
	b.sshd.Restart()
	again := b.await(t, func(s share.Status) bool { return s.State == share.Up })
	require.Equal(t, first.PID, again.PID)
	require.NotZero(t, again.Reconnects)
	require.Equal(t, signed.LastOperation, again.LastOperation)
	b.sign(t)
	b.await(t, func(s share.Status) bool { return s.SessionsTotal > signed.SessionsTotal })
	r = b.do(t, "status", "-F", b.sshd.ConfigFile, "host")
	require.Contains(t, r.stdout, "PKSIGN "+b.key.Keygrip[:8])

	b.down(t, "-F", b.sshd.ConfigFile, "host")
	b.requireNoSocket(t)
	require.Empty(t, b.status(t))
	eventually(t, func() bool { return len(b.pids()) == 0 }, "the process is left")
	r = b.do(t, "down", "-F", b.sshd.ConfigFile, "host")
	require.Zero(t, r.code)
	require.Equal(t, "gpg-bridge: host: there is no bridge to end\n", r.stderr)
	r = b.do(t, "status", "-F", b.sshd.ConfigFile, "host")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `no bridge to "host"`)
}

// Many ask at once, for a bridge and then for a standby; each time there is one.
func TestBackgroundAskedForByMany(t *testing.T) {
	b := stage{}.set(t).background(t)
	many := func() {
		var all []*process
		for range 6 {
			all = append(all, launch(t, b.laptop, nil, "up", "-F", b.sshd.ConfigFile, "host", "host"))
		}
		for _, p := range all {
			require.Zero(t, p.wait(t).code, "%s", &p.stderr)
		}
		eventually(t, func() bool { return len(b.pids()) == 1 }, "there is not one")
	}
	many()
	b.down(t, "--all")
	eventually(t, func() bool { return len(b.pids()) == 0 }, "the process is left")
	session := b.start(t, "host", "echo there; cat")
	session.waitFor(t, &session.stdout, "there")
	b.await(t, func(s share.Status) bool { return s.State == share.Up && s.Kind == share.Session })
	many()
	require.Len(t, b.status(t), 2)
	session.signal(t, syscall.SIGTERM)
	session.wait(t)
	b.await(t, func(s share.Status) bool { return s.State == share.Up && s.Pinned })
	b.sign(t)
}

// SIGTERM, as at a shutdown, leaves nothing on the host, and so does SIGQUIT.
func TestBackgroundEndsOrderly(t *testing.T) {
	b := stage{}.set(t).background(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT} {
		b.up(t)
		status := b.status(t)[0]
		require.NoError(t, syscall.Kill(status.PID, sig))
		eventually(t, func() bool { return !exists(status.PID) }, "it does not end")
		b.requireNoSocket(t)
		require.Empty(t, b.status(t))
		log, err := os.Stat(b.dir.LogPath(status.ID))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), log.Mode())
		said, err := os.ReadFile(b.dir.LogPath(status.ID))
		require.NoError(t, err)
		require.NotContains(t, string(said), "goroutine")
	}
}

// A session is the bridge already: the one that shall stay waits behind it, in
// sight, and takes over.
func TestBackgroundBehindASession(t *testing.T) {
	b := stage{}.set(t).background(t)
	session := b.start(t, "host", "echo there; cat")
	session.waitFor(t, &session.stdout, "there")
	b.await(t, func(s share.Status) bool { return s.State == share.Up && s.Kind == share.Session })
	b.up(t)
	b.up(t)
	both := b.status(t)
	require.Len(t, both, 2)
	require.Equal(t, share.Up, both[0].State)
	require.Equal(t, share.Standby, both[1].State)
	require.Equal(t, []int{both[1].PID}, b.pids())
	require.Equal(t, both[0].Address, both[1].Address)

	session.signal(t, syscall.SIGTERM)
	session.wait(t)
	after := b.await(t, func(s share.Status) bool { return s.State == share.Up })
	require.Equal(t, both[1].PID, after.PID)
	require.True(t, after.Pinned)
	b.sign(t)

	session = b.start(t, "host", "echo there; cat") // uses it, and loses it
	session.waitFor(t, &session.stdout, "there")
	b.await(t, func(s share.Status) bool { return s.Leases == 1 })
	b.down(t, "--all")
	b.requireNoSocket(t)
	require.ErrorIs(t, within(time.Second, func() bool { return len(b.status(t)) > 0 }), errTooLate, "it stays down while the session lives")
	session.signal(t, syscall.SIGTERM)
	session.wait(t)
}

// A standby ends at once, and a bridge that makes way for a session becomes one.
func TestBackgroundMakesWay(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.up(t)
	first := b.status(t)[0]
	b.sshd.Stop()
	b.await(t, func(s share.Status) bool { return s.State == share.Waiting })
	b.sshd.Restart()
	session := b.start(t, "host", "echo there; cat")
	session.waitFor(t, &session.stdout, "there")
	eventually(t, func() bool {
		all := b.status(t)
		return len(all) > 0 && all[0].State == share.Up
	}, "nobody is up")
	require.Equal(t, []int{first.PID}, b.pids())
	b.sign(t)
	b.down(t, "-F", b.sshd.ConfigFile, "host")
	require.Empty(t, b.status(t))
	eventually(t, func() bool { return len(b.pids()) == 0 }, "the process is left")
	session.signal(t, syscall.SIGTERM)
	session.wait(t)
}

// What cannot be up says why and what to do, goes on trying, and ends at once.
func TestBackgroundProblems(t *testing.T) {
	silent := silentServer(t)
	for _, test := range []struct {
		name, text, hint string
		args             []string
	}{
		{"nobody resolves it", "cannot resolve the host name", "check the name", []string{"-o", "HostName=nowhere.invalid"}},
		{"nobody listens", "connection refused", "check that sshd runs", []string{"-p", "1"}},
		{"unknown host key", "is not known", "without BatchMode", []string{"-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=ask"}},
		{"no key", "permission denied (publickey)", "check IdentityFile", []string{"-o", "PubkeyAuthentication=no"}},
		{"says nothing", "not up after 2s, connecting", "", []string{"-p", silent, "--timeout", "2s", "-o", "ConnectTimeout=60"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := stage{}.set(t).background(t)
			r := b.do(t, append([]string{"up", "-F", b.sshd.ConfigFile, "host"}, test.args...)...)
			require.Equal(t, 1, r.code)
			t.Log(r.stderr)
			r.requireTwoLines(t, test.text, test.hint)
			require.Contains(t, r.stderr, "it goes on trying")
			require.NotEqual(t, share.Up, b.status(t)[0].State)
			start := time.Now()
			b.down(t, "--all")
			require.Less(t, time.Since(start), 3*time.Second)
		})
	}
}

// A host that turned us down is not asked again for long, unless somebody who
// uses it comes along.
func TestBackgroundTriesAgainWhenItIsWanted(t *testing.T) {
	b := stage{}.set(t).background(t)
	away := b.sshd.ClientKeyFile + ".away"
	require.NoError(t, os.Rename(b.sshd.ClientKeyFile, away))
	r := b.do(t, "up", "-F", b.sshd.ConfigFile, "host")
	require.Equal(t, 1, r.code, "%s", r.stderr)
	require.Equal(t, share.Waiting, b.status(t)[0].State)
	require.NoError(t, os.Rename(away, b.sshd.ClientKeyFile))
	b.up(t)
	status := b.status(t)[0]
	require.Equal(t, 1, status.Reconnects)
	require.NotNil(t, status.Problem)
	r = b.do(t, "status")
	require.Contains(t, r.stdout, " ago, over: ")
}

// --watch tells of every change, and of the end.
func TestBackgroundWatched(t *testing.T) {
	b := stage{}.set(t).background(t)
	lines := launch(t, b.laptop, nil, "status", "--watch", "--json")
	tables := launch(t, b.laptop, nil, "status", "--watch")
	tables.waitFor(t, &tables.stdout, "no bridges\n")
	b.up(t)
	b.sign(t)
	lines.waitFor(t, &lines.stdout, `"verb":"PKSIGN"`)
	tables.waitFor(t, &tables.stdout, "PKSIGN")
	b.down(t, "--all")
	lines.waitFor(t, &lines.stdout, `"state":"gone"`)
	eventually(t, func() bool { return strings.HasSuffix(tables.stdout.String(), "\n\nno bridges\n") }, "%s", &tables.stdout)
	for _, p := range []*process{lines, tables} {
		p.signal(t, syscall.SIGINT)
		p.wait(t).requireOK(t)
	}
	var states []share.State
	for line := range strings.Lines(lines.stdout.String()) {
		var status share.Status
		require.NoError(t, json.Unmarshal([]byte(line), &status), line)
		require.Equal(t, share.Version, status.Version)
		if len(states) == 0 || states[len(states)-1] != status.State {
			states = append(states, status.State)
		}
	}
	require.Subset(t, states, []share.State{share.Up, share.Stopping, share.Gone})
}

// A bridge that hangs is named, and nothing else is held up by it.
func TestBackgroundThatHangs(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.up(t)
	status := b.status(t)[0]
	stop(t, status.PID)
	r := b.do(t, "status")
	require.Zero(t, r.code)
	require.Contains(t, r.stderr, "does not answer")
	require.Contains(t, r.stderr, "kill -CONT ")
	require.NoError(t, syscall.Kill(status.PID, syscall.SIGKILL))
	eventually(t, func() bool { return !exists(status.PID) }, "it does not end")
	require.Empty(t, b.status(t))
	b.up(t) // past the socket that it left on the host
	b.sign(t)
}

// silentServer returns a port where connections are taken and nothing is said.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

// One GnuPG home is one target, however GNUPGHOME writes it, or does not: whoever
// has it finds the bridge that there is.
func TestBackgroundOfOneHome(t *testing.T) {
	b := stage{}.set(t).background(t)
	home := env.ShortDir(t)
	require.NoError(t, os.Symlink(b.laptop.Dir(), filepath.Join(home, ".gnupg")))
	var first share.Status
	for _, gnupgHome := range []string{home + "/.gnupg", home + "/.gnupg/", home + "//.gnupg", ""} {
		cmd := exec.Command(program, "up", "-F", b.sshd.ConfigFile, "host")
		cmd.Env = []string{"HOME=" + home, "GNUPGHOME=" + gnupgHome}
		r := launchAs(t, cmd, b.laptop, nil).wait(t)
		require.Zero(t, r.code, "%s", r.stderr)
		all := b.status(t)
		require.Len(t, all, 1, "%q", gnupgHome)
		if first.ID == "" {
			first = all[0]
		}
		require.Equal(t, first.PID, all[0].PID)
	}
	b.sign(t)
}
