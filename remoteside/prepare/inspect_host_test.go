package prepare_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/release"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/remoteside/prepare"
)

// snapshot is all that there is of an account: its files, in its home and its runtime
// directory, with mode, size, time and, of small ones, content; and its processes.
func (r *remote) snapshot(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, dir := range []string{r.Home, r.runtimeDir()} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			found = append(found, fmt.Sprintln(path, info.Mode(), info.Size(), info.ModTime().UnixNano()))
			return nil
		})
		if dir == r.Home || !os.IsNotExist(err) {
			require.NoError(t, err)
		}
	}
	processes := slices.DeleteFunc(r.Processes(), func(pid int) bool { // what is left of a session
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return err != nil || strings.HasPrefix(string(name), "sshd")
	})
	slices.Sort(processes)
	return append(found, fmt.Sprintln(processes))
}

func (r *remote) runtimeDir() string { return filepath.Join("/run/user", strconv.Itoa(r.UID)) }

// inspect inspects, and requires that nothing on the host has changed by it.
func (r *remote) inspect(t *testing.T, options prepare.Options) *prepare.Report {
	t.Helper()
	before := r.snapshot(t)
	report, err := prepare.Inspect(t.Context(), r, options)
	r.requireUnchanged(t, before)
	require.NoError(t, err)
	require.Regexp(t, `^2\.`, report.Version)
	return report
}

// inspectKeys inspects until the keys are compared: the time that listing them may take is bounded,
// and on a busy machine it is not enough.
func (r *remote) inspectKeys(t *testing.T, options prepare.Options) *prepare.Report {
	t.Helper()
	for range 10 {
		if report := r.inspect(t, options); report.Compared {
			return report
		}
	}
	require.Fail(t, "the keys are never compared")
	return nil
}

// requireUnchanged waits for processes that have been told to end, and for nothing else.
func (r *remote) requireUnchanged(t *testing.T, before []string) {
	t.Helper()
	now := r.snapshot(t)
	for deadline := time.Now().Add(time.Second); len(now) == len(before) && now[len(now)-1] != before[len(now)-1] && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		now = r.snapshot(t)
	}
	require.Equal(t, before, now)
}

// laptopKeys are the keys of a laptop, as a host is to have them.
func laptopKeys(t *testing.T, h *gpghome.Home) (wanted []prepare.Key, fingerprints []string) {
	t.Helper()
	keyring := agentside.Keyring{Env: h.Env()}
	keys, err := keyring.SecretKeys(t.Context())
	require.NoError(t, err)
	for _, key := range keys {
		wanted, fingerprints = append(wanted, prepare.Key(key)), append(fingerprints, key.Fingerprint)
	}
	return wanted, fingerprints
}

// give imports a laptop's public keys on the host, and leaves no trustdb there.
func (r *remote) give(t *testing.T, h *gpghome.Home) {
	t.Helper()
	keys, err := exporter(h, nil)(t.Context(), nil)
	require.NoError(t, err)
	r.WriteFile(t, "keys", keys, 0o600)
	r.Mkdir(t, ".gnupg")
	r.Run0(t, "gpg --batch --quiet --no-autostart --import keys 2>&1; rm -f .gnupg/trustdb.gpg")
}

func TestInspectFreshAccount(t *testing.T) {
	h, _ := home(t)
	wanted, fingerprints := laptopKeys(t, h)
	for _, runtime := range []bool{false, true} {
		r := newRemote(t, sshd.AccountConfig{RuntimeDir: runtime}, sshd.Config{})
		report := r.inspect(t, prepare.Options{Wanted: wanted})
		require.True(t, report.Compared)
		require.Equal(t, fingerprints, report.Missing)
		require.Empty(t, report.Stale)
		require.Equal(t, prepare.AnswersNobody, report.Answers)
		require.NoError(t, report.Err())
		require.NoDirExists(t, r.Path(".gnupg"))
		require.NoError(t, prepare.Look(t.Context(), r, ""))
		require.NoDirExists(t, r.Path(".gnupg"))

		r.Mkdir(t, ".gnupg") // without a keyring
		require.Equal(t, report, r.inspect(t, prepare.Options{Wanted: wanted}))

		p, err := prepare.Prepare(t.Context(), r, prepare.Options{})
		require.NoError(t, err)
		_, err = p.Wait()
		require.NoError(t, err)
		require.Equal(t, p.Socket, report.Socket, "where a preparation makes it")
		require.Equal(t, prepare.AnswersNobody, r.inspect(t, prepare.Options{}).Answers)
	}
}

// GnuPG names the directory of a home's sockets by the home's hash, and makes it when it
// is asked for the name.
func TestInspectNamesTheSocketOfAnotherHome(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{RuntimeDir: true}, sshd.Config{})
	for _, name := range []string{"other", "with a blank", "it's"} {
		r.Mkdir(t, name)
		for _, made := range []bool{false, true} { // the directory around it
			report := r.inspect(t, prepare.Options{Home: r.Path(name)})
			require.NoDirExists(t, filepath.Dir(report.Socket))
			require.Contains(t, report.Socket, r.runtimeDir()+"/gnupg/d.")
			if made {
				p := r.prepare(t, prepare.Options{Home: r.Path(name)})
				require.Equal(t, p.Socket, report.Socket)
				require.Equal(t, p.Socket, r.inspect(t, prepare.Options{Home: r.Path(name)}).Socket)
			} else {
				r.Mkdir(t, r.runtimeDir()+"/gnupg")
			}
		}
		require.NoError(t, os.RemoveAll(r.runtimeDir()+"/gnupg"))
	}
	// gpgconf uses no directory that others may enter.
	r.Mkdir(t, r.runtimeDir()+"/gnupg")
	require.NoError(t, os.Chmod(r.runtimeDir()+"/gnupg", 0o755))
	require.Equal(t, r.Path("other/S.gpg-agent"), r.inspect(t, prepare.Options{Home: r.Path("other")}).Socket)
}

func TestInspectWithoutSHA1(t *testing.T) {
	path := linksWithout(t, "sha1sum")
	r := newRemote(t, sshd.AccountConfig{RuntimeDir: true}, sshd.Config{Options: []string{"SetEnv PATH=" + path}})
	r.Mkdir(t, "other")
	before := r.snapshot(t)
	_, err := prepare.Inspect(t.Context(), r, prepare.Options{Home: r.Path("other")})
	r.requireUnchanged(t, before)
	require.ErrorContains(t, err, "sha1sum")
	require.Equal(t, r.runtimeDir()+"/gnupg/S.gpg-agent", r.inspect(t, prepare.Options{}).Socket)
}

// A home with some of the keys, some in an older state, on this release and the next.
func TestInspectComparesKeys(t *testing.T) {
	for name, inside := range map[string]func(*testing.T) []string{
		"this release": func(*testing.T) []string { return nil },
		"another":      func(t *testing.T) []string { return release.Inside(t, release.Suites()[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, sshd.AccountConfig{}, sshd.Config{Inside: inside(t)})
			h, alice := home(t)
			r.give(t, h)
			wanted, _ := laptopKeys(t, h)
			report := r.inspect(t, prepare.Options{Wanted: wanted})
			require.True(t, report.Compared)
			require.Empty(t, slices.Concat(report.Missing, report.Stale))

			gpgAt(t, h, "", "--quick-add-key", alice.Fingerprint, "ed25519", "sign", "never")
			bob, err := h.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Bob <bob@example.org>"})
			require.NoError(t, err)
			wanted, _ = laptopKeys(t, h)
			report = r.inspect(t, prepare.Options{Wanted: wanted})
			require.True(t, report.Compared)
			require.Equal(t, []string{bob.Fingerprint}, report.Missing)
			require.Equal(t, []string{alice.Fingerprint}, report.Stale)
			require.Nil(t, report.Hung)

			// What gpg would make, write or wait for if it read this.
			r.WriteFile(t, ".gnupg/gpg.conf", []byte("trust-model tofu\nlog-file "+r.Path("log")+"\n"), 0o600)
			r.WriteFile(t, ".gnupg/pubring.kbx.lock", []byte("         1\nelsewhere\n"), 0o600)
			require.Equal(t, report, r.inspect(t, prepare.Options{Wanted: wanted}))
			r.WriteFile(t, ".gnupg/gpg.conf", []byte("keyring more.gpg\n"), 0o600)
			report = r.inspect(t, prepare.Options{Wanted: wanted})
			require.False(t, report.Compared)
			require.Empty(t, slices.Concat(report.Missing, report.Stale))
		})
	}
}

func TestInspectLeavesKeyboxd(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{Inside: release.Inside(t, release.Suites()[0])})
	h, alice := home(t)
	wanted, _ := laptopKeys(t, h)
	wanted = append(wanted, prepare.Key{Fingerprint: strings.Repeat("A", 40)})
	r.WriteFile(t, ".gnupg/common.conf", []byte("use-keyboxd\n"), 0o600)
	report := r.inspect(t, prepare.Options{Wanted: wanted})
	require.False(t, report.Compared)
	require.Empty(t, slices.Concat(report.Missing, report.Stale))

	r.prepare(t, prepare.Options{Wanted: wanted[:1], Export: exporter(h, nil)}) // which starts keyboxd
	require.Eventually(t, func() bool { return len(r.Processes()) == 1 }, patience, 10*time.Millisecond)
	report = r.inspect(t, prepare.Options{Wanted: wanted})
	require.True(t, report.Compared)
	require.Equal(t, []string{strings.Repeat("A", 40)}, report.Missing)
	require.NotContains(t, report.Stale, alice.Fingerprint)
}

// Whoever answers is named, and the keys are compared all the same.
func TestInspectNamesWhoAnswers(t *testing.T) {
	const token = ".gpg-bridge-0123456789abcdef"
	h, alice := home(t)
	require.NoError(t, h.StartAgent(t.Context()))
	wanted, _ := laptopKeys(t, h)
	wanted = append(wanted, prepare.Key{Fingerprint: strings.Repeat("A", 40)})
	for name, test := range map[string]struct {
		begin   func(*testing.T, *remote)
		answers prepare.Answers
		is      error
	}{
		"own":   {func(t *testing.T, r *remote) { r.startAgent(t) }, prepare.AnswersOwn, &prepare.OwnAgentError{}},
		"held":  {func(t *testing.T, r *remote) { r.forward(t, extraSocket(t, h)) }, prepare.AnswersHeld, &prepare.HeldError{}},
		"stale": {func(t *testing.T, r *remote) { require.NoError(t, r.listen(t).Close()) }, prepare.AnswersNobody, nil},
		"link":  {func(t *testing.T, r *remote) { require.NoError(t, os.Symlink("/nonexistent", r.socket())) }, prepare.AnswersNobody, nil},
		"self":  {func(t *testing.T, r *remote) { r.WriteFile(t, ".gnupg/"+token, nil, 0o600) }, prepare.AnswersSelf, &prepare.SelfError{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
			r.give(t, h)
			test.begin(t, r)
			report := r.inspect(t, prepare.Options{Token: token, Wanted: wanted, Evict: true, Takeover: true})
			require.Equal(t, test.answers, report.Answers)
			require.Equal(t, r.socket(), report.Socket)
			require.IsType(t, test.is, report.Err())
			require.IsType(t, test.is, prepareError(t, r, token))
			require.Equal(t, name == "own", report.PID != 0)
			if name == "own" {
				require.Equal(t, r.agentPID(t), strconv.Itoa(report.PID))
			}
			require.True(t, report.Compared)
			require.Equal(t, []string{strings.Repeat("A", 40)}, report.Missing)
			require.NotContains(t, report.Stale, alice.Fingerprint)
		})
	}
}

func prepareError(t *testing.T, r *remote, token string) error {
	t.Helper()
	p, err := prepare.Prepare(t.Context(), r, prepare.Options{Token: token})
	if err == nil {
		_, err = p.Wait()
	}
	return err
}

// TestInspectStartsNoAgent: to connect to a socket where systemd listens would. A
// forward that has taken the path is another listener there.
func TestInspectStartsNoAgent(t *testing.T) {
	path := linksWithout(t, "systemctl")
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{Options: []string{"SetEnv PATH=" + path}})
	systemctl := func(socket string) {
		r.WriteFile(t, filepath.Join(path, "systemctl"), []byte("#!/bin/sh\necho 'Listen="+socket+" (Stream)'\necho SubState=listening\n"), 0o755)
	}
	systemctl(r.socket())
	l := r.listen(t)
	require.Equal(t, prepare.AnswersNobody, r.inspect(t, prepare.Options{}).Answers)
	require.NoError(t, l.SetDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := l.Accept()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "somebody has connected")

	require.NoError(t, os.Remove(r.socket()))
	h, _ := home(t)
	require.NoError(t, h.StartAgent(t.Context()))
	r.forward(t, extraSocket(t, h))
	require.Equal(t, prepare.AnswersHeld, r.inspect(t, prepare.Options{}).Answers)
	require.NoError(t, l.Close())
	systemctl("/elsewhere")
	require.Equal(t, prepare.AnswersHeld, r.inspect(t, prepare.Options{}).Answers)
}

// TestInspectShells: every login shell, and whatever is called sh.
func TestInspectShells(t *testing.T) {
	h, alice := home(t)
	wanted, _ := laptopKeys(t, h)
	wanted = append(wanted, prepare.Key{Fingerprint: strings.Repeat("A", 40)})
	inspect := func(t *testing.T, account sshd.AccountConfig, config sshd.Config) {
		account.RuntimeDir = true
		r := newRemote(t, account, config)
		require.NoError(t, r.Run(t.Context(), "true", strings.NewReader(""), nil, nil)) // fish makes its own files
		r.give(t, h)
		pid := r.startAgent(t)
		report := r.inspectKeys(t, prepare.Options{Wanted: wanted})
		require.Equal(t, pid, strconv.Itoa(report.PID))
		require.Equal(t, []string{strings.Repeat("A", 40)}, report.Missing)
		require.NotContains(t, report.Stale, alice.Fingerprint)

		r.Mkdir(t, "other")
		report = r.inspectKeys(t, prepare.Options{Home: r.Path("other"), Wanted: wanted})
		require.Len(t, report.Missing, 2)
		require.Equal(t, r.prepare(t, prepare.Options{Home: r.Path("other")}).Socket, report.Socket)
	}
	for _, shell := range []string{"bash", "dash", "fish", "tcsh"} {
		t.Run(shell, func(t *testing.T) { inspect(t, sshd.AccountConfig{Shell: shell}, sshd.Config{}) })
	}
	for _, shell := range []string{"bash", "dash", "busybox", "ksh", "mksh", "yash", "zsh"} {
		t.Run("sh is "+shell, func(t *testing.T) {
			path := linksWithout(t, "sh")
			require.NoError(t, os.Symlink(env.Tool(t, shell), filepath.Join(path, "sh")))
			inspect(t, sshd.AccountConfig{}, sshd.Config{Options: []string{"SetEnv PATH=" + path}})
		})
	}
}

// What cannot be reported on is an error, as when the host is prepared.
func TestInspectFails(t *testing.T) {
	for name, test := range map[string]struct {
		account sshd.AccountConfig
		make    func(*testing.T, *remote)
		is      error
		reason  string
	}{
		"no shell":    {account: sshd.AccountConfig{Shell: "nologin"}, is: &prepare.NoShellError{}},
		"no gpg":      {account: sshd.AccountConfig{NoGPG: true}, is: &prepare.NoGPGError{}},
		"a directory": {make: func(t *testing.T, r *remote) { r.Mkdir(t, r.socket()) }, is: &prepare.SocketPathError{}, reason: "a directory is there"},
		"a file": {make: func(t *testing.T, r *remote) { r.WriteFile(t, r.socket(), []byte("text\n"), 0o600) },
			is: &prepare.SocketPathError{}, reason: "not a socket"},
		"home is a file": {make: func(t *testing.T, r *remote) { r.WriteFile(t, ".gnupg", []byte("text\n"), 0o600) },
			is: &prepare.SocketPathError{}, reason: "could not be made"},
		"home cannot be made": {make: func(t *testing.T, r *remote) { require.NoError(t, os.Chown(r.Home, 0, 0)) },
			is: &prepare.SocketPathError{}, reason: "could not be made"},
		"home is not ours": {make: func(t *testing.T, r *remote) { require.NoError(t, os.Mkdir(r.Path(".gnupg"), 0o755)) },
			is: &prepare.SocketPathError{}, reason: "may not be written"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, test.account, sshd.Config{})
			if test.make != nil {
				test.make(t, r)
			}
			before := r.snapshot(t)
			_, err := prepare.Inspect(t.Context(), r, prepare.Options{})
			r.requireUnchanged(t, before)
			require.IsType(t, test.is, err)
			require.ErrorContains(t, err, test.reason)
			require.IsType(t, test.is, prepare.Look(t.Context(), r, ""))
		})
	}
}
