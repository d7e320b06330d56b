package prepare_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/remoteside/prepare"
)

func TestPrepareFreshAccount(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	p := r.prepare(t, prepare.Options{})
	require.Equal(t, r.socket(), p.Socket)
	require.Regexp(t, `^2\.`, p.Version)
	require.Equal(t, os.FileMode(0o700), mode(t, r.Path(".gnupg")))
	require.Len(t, r.runs, 1)
	require.Eventually(t, func() bool { return len(r.Processes()) == 0 }, patience, 10*time.Millisecond,
		"nothing was started on the host")
}

func TestPrepareFreshAccountWithRuntimeDir(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{RuntimeDir: true}, sshd.Config{})
	p := r.prepare(t, prepare.Options{})
	require.Equal(t, filepath.Join("/run/user", strconv.Itoa(r.UID), "gnupg/S.gpg-agent"), p.Socket)
	require.Equal(t, os.FileMode(0o700), mode(t, filepath.Dir(p.Socket)))
	require.Equal(t, os.FileMode(0o700), mode(t, r.Path(".gnupg")))
}

func TestPrepareRemovesWhatNobodyAnswers(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, *remote){
		"stale socket": func(t *testing.T, r *remote) { require.NoError(t, r.listen(t).Close()) },
		"dangling link": func(t *testing.T, r *remote) {
			r.Mkdir(t, ".gnupg")
			require.NoError(t, os.Symlink("/nonexistent", r.socket()))
		},
		"accepts and never greets": func(t *testing.T, r *remote) { hold(t, r.listen(t)) },
		"listens and never accepts": func(t *testing.T, r *remote) {
			r.listen(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
			leave(t, r)
			r.prepare(t, prepare.Options{})
			_, err := os.Lstat(r.socket())
			require.ErrorIs(t, err, os.ErrNotExist)
			require.Eventually(t, func() bool { return len(r.Processes()) == 0 }, patience, 10*time.Millisecond)
		})
	}
}

// hold accepts connections and keeps them until the test ends.
func hold(t *testing.T, l *net.UnixListener) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var held []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				break
			}
			held = append(held, conn)
		}
		for _, conn := range held {
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
}

func TestPrepareStopsOwnAgentWithIdleClients(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	pid := r.startAgent(t)
	for range 3 {
		client := r.Command("gpg-connect-agent", "--no-autostart")
		_, err := client.StdinPipe() // stays open: the client idles
		require.NoError(t, err)
		start(t, client)
	}
	require.Eventually(t, func() bool { return len(r.Processes()) == 4 }, patience, 10*time.Millisecond)
	r.prepare(t, prepare.Options{Evict: true})
	_, err := os.Lstat(r.socket())
	require.ErrorIs(t, err, os.ErrNotExist)
	r.forwardsNow(t)
	number, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.NotContains(t, r.Processes(), number)
}

// forwardsNow: sshd, with its default StreamLocalBindUnlink no, grants it, and
// what it listens at is not removed by a late dying agent.
func (r *remote) forwardsNow(t *testing.T) {
	t.Helper()
	h, _ := home(t)
	require.NoError(t, h.StartAgent(t.Context()))
	r.forward(t, extraSocket(t, h))
	require.Contains(t, r.Run0(t, "gpg-connect-agent --no-autostart 'GETINFO restricted' /bye"), "OK")
}

// TestPrepareStopsSupervisedAgent: an agent under systemd leaves the path to
// who made it.
func TestPrepareStopsSupervisedAgent(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	l := r.listen(t)
	file, err := l.File()
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	agent := r.Command("/bin/sh", "-c", "LISTEN_FDS=1 LISTEN_FDNAMES=std LISTEN_PID=$$ exec gpg-agent --supervised")
	agent.ExtraFiles = []*os.File{file}
	require.NoError(t, agent.Start())
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	require.Eventually(t, func() bool { return r.answers("GETINFO pid") }, patience, 10*time.Millisecond)
	r.prepare(t, prepare.Options{Evict: true})
	_, err = os.Lstat(r.socket())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, <-ended)
}

func TestPrepareLeavesOwnAgentUnlessEvicting(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	pid := r.startAgent(t)
	_, err := prepare.Prepare(t.Context(), r, prepare.Options{Takeover: true})
	var own *prepare.OwnAgentError
	require.ErrorAs(t, err, &own)
	require.Equal(t, pid, strconv.Itoa(own.PID))
	require.Equal(t, r.socket(), own.Socket)
	require.NotEmpty(t, own.Hint())
	require.Equal(t, pid, r.agentPID(t))
}

func TestPrepareLeavesLiveForward(t *testing.T) {
	h, _ := home(t)
	require.NoError(t, h.StartAgent(t.Context()))
	main, err := h.AgentSocket(t.Context())
	require.NoError(t, err)
	for name, local := range map[string]string{"restricted": extraSocket(t, h), "main socket": main} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
			r.forward(t, local)
			before, err := h.AgentPID(t.Context())
			require.NoError(t, err)

			_, err = prepare.Prepare(t.Context(), r, prepare.Options{Evict: true})
			var held *prepare.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, r.socket(), held.Socket)
			require.Contains(t, held.Hint(), "--takeover")
			require.True(t, r.answers("GETINFO version"), "it still answers")

			r.prepare(t, prepare.Options{Evict: true, Takeover: true})
			require.NoFileExists(t, r.socket())
			after, err := h.AgentPID(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, after, "the agent at the other end lives")
		})
	}
}

// TestPrepareLeavesForwardWithoutAgent: a bridge whose local agent is away
// greets, and then says that there is none. It is somebody's all the same.
func TestPrepareLeavesForwardWithoutAgent(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	l := r.listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("OK Pleased to meet you\n"))
			_, _ = conn.Read(make([]byte, 100))
			_, _ = conn.Write([]byte("ERR 67108941 No agent running <GPG Agent>\n"))
			_ = conn.Close()
		}
	}()
	_, err := prepare.Prepare(t.Context(), r, prepare.Options{Evict: true})
	var held *prepare.HeldError
	require.ErrorAs(t, err, &held)
	<-done
}

// TestPrepareWithoutGPGConnectAgent: nobody can be asked who answers, but Linux
// tells whether anybody listens.
func TestPrepareWithoutGPGConnectAgent(t *testing.T) {
	path := linksWithout(t, "gpg-connect-agent")
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{Options: []string{"SetEnv PATH=" + path}})
	l := r.listen(t)
	_, err := prepare.Prepare(t.Context(), r, prepare.Options{Evict: true})
	var held *prepare.HeldError
	require.ErrorAs(t, err, &held)
	require.NoError(t, l.Close())
	r.prepare(t, prepare.Options{Evict: true})
	require.NoFileExists(t, r.socket())
}

func linksWithout(t *testing.T, name string) string {
	t.Helper()
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	entries, err := os.ReadDir("/usr/bin")
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.Name() != name {
			require.NoError(t, os.Symlink(filepath.Join("/usr/bin", entry.Name()), filepath.Join(dir, entry.Name())))
		}
	}
	return dir
}

func TestPrepareRefusesWhatIsNoSocket(t *testing.T) {
	for name, test := range map[string]struct {
		make   func(*testing.T, *remote)
		reason string
	}{
		"directory": {func(t *testing.T, r *remote) { r.WriteFile(t, r.socket()+"/file", nil, 0o600) }, "a directory is there"},
		"file":      {func(t *testing.T, r *remote) { r.WriteFile(t, r.socket(), []byte("text\n"), 0o600) }, "not a socket"},
		"redirect": {func(t *testing.T, r *remote) {
			r.WriteFile(t, r.socket(), []byte("%Assuan%\nsocket=/tmp/x\n"), 0o600)
		}, "redirects"},
		"home is a file": {func(t *testing.T, r *remote) { r.WriteFile(t, ".gnupg", []byte("text\n"), 0o600) }, "directory is missing"},
		"home is not ours": {func(t *testing.T, r *remote) {
			require.NoError(t, os.Mkdir(r.Path(".gnupg"), 0o755))
		}, "may not be written"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
			test.make(t, r)
			_, err := prepare.Prepare(t.Context(), r, prepare.Options{Evict: true, Takeover: true})
			var path *prepare.SocketPathError
			require.ErrorAs(t, err, &path)
			require.Contains(t, err.Error(), test.reason)
			require.Equal(t, r.socket(), path.Path)
			require.NotEmpty(t, path.Hint())
			_, err = os.Stat(r.Path(".gnupg"))
			require.NoError(t, err, "nothing was removed")
			if name == "directory" {
				require.FileExists(t, r.socket()+"/file")
			}
		})
	}
}

func TestRemoveSocketRemovesSocketsOnly(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{Shell: "fish"}, sshd.Config{})
	require.NoError(t, r.listen(t).Close())
	r.WriteFile(t, "it's a $(file)", nil, 0o600)
	require.NoError(t, prepare.RemoveSocket(t.Context(), r, r.socket()))
	require.NoFileExists(t, r.socket())
	require.NoError(t, prepare.RemoveSocket(t.Context(), r, r.socket()), "it is gone already")
	require.NoError(t, prepare.RemoveSocket(t.Context(), r, r.Path("it's a $(file)")))
	require.FileExists(t, r.Path("it's a $(file)"))

	odd := r.Path(`it's a "$(socket)`)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: odd})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.NoError(t, prepare.RemoveSocket(t.Context(), r, odd))
	require.NoFileExists(t, odd)

	ran := len(r.runs)
	for _, path := range []string{"", "relative", "/new\nline", "/esc\x1b"} {
		require.Error(t, prepare.RemoveSocket(t.Context(), r, path))
	}
	require.Len(t, r.runs, ran, "nothing was run for these")
}

func TestExplainRefusal(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	require.NoError(t, r.listen(t).Close())
	long := r.Path(strings.Repeat("x", 107))
	for path, want := range map[string]prepare.Refusal{
		r.socket():            prepare.RefusedExists,
		r.Path(".gnupg"):      prepare.RefusedIsDir,
		r.Path("no/dir"):      prepare.RefusedNoDir,
		"/root/x":             prepare.RefusedReadOnly,
		"~/x":                 prepare.RefusedRelative,
		long:                  prepare.RefusedLong,
		r.Path(".gnupg/free"): prepare.RefusedByPolicy,
		"/x\n":                prepare.RefusedUnknown,
	} {
		err := prepare.ExplainRefusal(t.Context(), r, path)
		var refused *prepare.RefusedError
		require.True(t, errors.As(err, &refused), path)
		require.Equal(t, want, refused.Refusal, path)
		require.NotEmpty(t, refused.Hint())
		require.NotContains(t, refused.Error(), "\n")
	}
}

// TestPrepareLeavesTheCallersOwnSocket: a host that sees the token next to its
// socket looks at the caller's own directory. With a home on NFS the agent that
// made the socket runs on another machine, and nobody answers here.
func TestPrepareLeavesTheCallersOwnSocket(t *testing.T) {
	const token = ".gpg-bridge-0123456789abcdef"
	for name, leave := range map[string]func(*testing.T, *remote){
		"agent runs":  func(t *testing.T, r *remote) { r.startAgent(t) },
		"nobody here": func(t *testing.T, r *remote) { require.NoError(t, r.listen(t).Close()) },
		"no socket":   func(t *testing.T, r *remote) { r.Mkdir(t, ".gnupg") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
			leave(t, r)
			before, processes := names(t, r.Path(".gnupg")), r.Processes()
			r.WriteFile(t, ".gnupg/"+token, nil, 0o600)
			options := prepare.Options{Evict: true, Takeover: true, Token: token}
			_, err := prepare.Prepare(t.Context(), r, options)
			var self *prepare.SelfError
			require.ErrorAs(t, err, &self)
			require.Equal(t, r.socket(), self.Socket)
			require.NotEmpty(t, self.Hint())
			require.NoError(t, os.Remove(r.Path(".gnupg/"+token)))
			require.Equal(t, before, names(t, r.Path(".gnupg")))
			require.Subset(t, r.Processes(), processes)

			r.prepare(t, options)
			require.NoFileExists(t, r.socket(), "without the token it is the host's own")
		})
	}
}

func names(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

// TestLookLeavesAll: whoever has the path is named, and nothing is changed, not even where
// a preparation would.
func TestLookLeavesAll(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	require.NoError(t, prepare.Look(t.Context(), r, ""))
	require.NoError(t, r.listen(t).Close())
	require.NoError(t, prepare.Look(t.Context(), r, ""))
	_, err := os.Lstat(r.socket())
	require.NoError(t, err, "a socket at which nobody listens")
	require.NoError(t, os.Remove(r.socket()))

	pid := r.startAgent(t)
	var own *prepare.OwnAgentError
	require.ErrorAs(t, prepare.Look(t.Context(), r, ""), &own)
	require.Equal(t, pid, strconv.Itoa(own.PID))
	require.Equal(t, pid, r.agentPID(t))
	r.Run0(t, "gpgconf --kill gpg-agent")

	h, _ := home(t)
	require.NoError(t, h.StartAgent(t.Context()))
	r.forward(t, extraSocket(t, h))
	var held *prepare.HeldError
	require.ErrorAs(t, prepare.Look(t.Context(), r, ""), &held)
	require.True(t, r.answers("GETINFO version"))
}

func TestPrepareRunsNothingForWhatIsNoToken(t *testing.T) {
	r := &remote{}
	for _, token := range []string{"a/b", "Q", "Z", "~", "?", "$(reboot)", "a b", strings.Repeat("a", 65)} {
		_, err := prepare.Prepare(t.Context(), r, prepare.Options{Token: token})
		require.Error(t, err)
	}
	require.Empty(t, r.runs)
}
