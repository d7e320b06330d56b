package sshfwd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// remembering is a server and an agent with keys a to h, two more than sshd lets a client
// try by default.
type remembering struct {
	t          *testing.T
	srv        *sshd.Server
	dir        string
	authorized string
	config     *config.Config
	stateDir   string
}

func newRemembering(t *testing.T) *remembering {
	t.Helper()
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	r := &remembering{t: t, dir: dir, authorized: filepath.Join(dir, "authorized")}
	var keys []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		keys = append(keys, sshkeys.Keygen(t, dir, name, "-t", "ed25519"))
	}
	r.srv = sshd.Start(t, sshd.Config{Options: []string{"AuthorizedKeysFile " + r.authorized, "MaxAuthTries 20"}})
	r.config = authConfig(t, r.srv, nil, "IdentitiesOnly=no", "IdentityAgent="+startAgent(t, keys...))
	r.stateDir = filepath.Join(dir, "cache", "gpg-bridge")
	return r
}

// offers is how many keys a log-in offers if the server accepts these.
func (r *remembering) offers(letIn ...string) int {
	r.t.Helper()
	var lines []string
	for _, name := range letIn {
		lines = append(lines, sshkeys.PublicLine(r.t, filepath.Join(r.dir, name+".pub"))+"\n")
	}
	require.NoError(r.t, os.WriteFile(r.authorized, []byte(strings.Join(lines, "")), 0o644))
	keys, _ := offeredTo(r.t, r.srv, func() bool { requireLogin(r.t, r.config, nil, withStateDir(r.stateDir)); return true })
	return len(keys)
}

func (r *remembering) file() string { return filepath.Join(r.stateDir, "last-keys") }

func (r *remembering) remembers() string {
	data, err := os.ReadFile(r.file())
	if err != nil {
		require.ErrorIs(r.t, err, fs.ErrNotExist)
	}
	return string(data)
}

func TestKeyMemory(t *testing.T) {
	t.Parallel()
	r := newRemembering(t)
	require.Equal(t, 8, r.offers("h"))
	require.Equal(t, 6, r.offers("h"), "as many as sshd takes")
	require.NotContains(t, r.remembers(), r.srv.Host)
	for path, mode := range map[string]fs.FileMode{r.stateDir: 0o700, r.file(): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}
	require.Equal(t, 8, r.offers("g"), "h at the sixth place")
	require.Equal(t, 6, r.offers("g"))
	require.Equal(t, 7, r.offers("f"), "g before it")
	require.Empty(t, r.remembers(), "what sshd takes by itself needs no memory")
	require.Equal(t, 6, r.offers("f"))

	require.Equal(t, 8, r.offers("h"))
	r.config.IdentityFiles = []string{filepath.Join(r.dir, "b")}
	require.Equal(t, 1, r.offers("b", "h"), "another list: the key that the user names comes first")
}

// Of two keys that a host accepts the first is used, whichever was used last: for GitHub
// and its like they are two accounts.
func TestKeyMemoryKeepsTheUsersOrder(t *testing.T) {
	t.Parallel()
	r := newRemembering(t)
	require.Equal(t, 8, r.offers("h"))
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		require.Equal(t, i+1, r.offers(name, "h"), name)
		r.offers("h") // remembered again
	}
	dir := t.TempDir()
	first, second := sshkeys.Keygen(t, dir, "k1", "-t", "ed25519"), sshkeys.Keygen(t, dir, "k2", "-t", "ed25519")
	r.config.IdentitiesOnly, r.config.IdentityAgent = true, "none"
	r.config.IdentityFiles = []string{first, second}
	let := func(keys ...string) (offered []string) {
		var lines []string
		for _, key := range keys {
			lines = append(lines, sshkeys.PublicLine(t, key+".pub")+"\n")
		}
		require.NoError(t, os.WriteFile(r.authorized, []byte(strings.Join(lines, "")), 0o644))
		offered, _ = offeredTo(t, r.srv, func() bool { requireLogin(t, r.config, nil, withStateDir(r.stateDir)); return true })
		return offered
	}
	require.Len(t, let(second), 2)
	require.Len(t, let(first, second), 1, "the user's first")
}

func TestKeyMemoryIsOnlyTheUsersOwn(t *testing.T) {
	for name, spoil := range map[string]func(r *remembering){
		"directory open":  func(r *remembering) { require.NoError(t, os.Chmod(r.stateDir, 0o750)) },
		"file open":       func(r *remembering) { require.NoError(t, os.Chmod(r.file(), 0o640)) },
		"file of another": func(r *remembering) { require.NoError(t, os.Chown(r.file(), 1, 1)) },
		"directory of another": func(r *remembering) {
			require.NoError(t, os.Chown(r.stateDir, 1, 1))
		},
		"link": func(r *remembering) {
			require.NoError(t, os.Rename(r.file(), r.file()+"2"))
			require.NoError(t, os.Symlink(r.file()+"2", r.file()))
		},
		"too large": func(r *remembering) {
			require.NoError(t, os.WriteFile(r.file(), []byte(r.remembers()+strings.Repeat("x", 64<<10)), 0o600))
		},
		"a file in its place": func(r *remembering) {
			require.NoError(t, os.RemoveAll(r.stateDir))
			require.NoError(t, os.WriteFile(r.stateDir, nil, 0o600))
		},
		"off": func(r *remembering) { r.stateDir = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if os.Getuid() != 0 && strings.Contains(name, "another") {
				env.Missing(t, "not root: no file of another can be made")
			}
			r := newRemembering(t)
			require.Equal(t, 8, r.offers("h"))
			spoil(r)
			require.Equal(t, 8, r.offers("h"))
		})
	}
}

// The hint does not cause a prompt: an encrypted file keeps its place.
func TestKeyMemoryAsksNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	for i := range 7 { // the one that is remembered is asked for where more than six are known
		files = append(files, sshkeys.Keygen(t, dir, fmt.Sprint("plain", i), "-t", "ed25519"))
	}
	locked := sshkeys.Keygen(t, dir, "locked", "-t", "ed25519", "-N", "sesame")
	files = append(files, locked)
	srv := sshd.Start(t, sshd.Config{Options: []string{"AuthorizedKeysFile " + locked + ".pub", "MaxAuthTries 20", "StrictModes no"}})
	c := authConfig(t, srv, files)
	state := withStateDir(filepath.Join(dir, "state"))
	for range 2 {
		keys, _ := offeredTo(t, srv, func() bool { requireLogin(t, c, &asker.Script{Answers: []string{"sesame"}}, state); return true })
		require.Len(t, keys, len(files))
	}
}
