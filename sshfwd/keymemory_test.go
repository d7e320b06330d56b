package sshfwd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshdtest"
	"gpg-bridge/internal/testenv"
)

// remembering is a server and an agent with keys a, b and c.
type remembering struct {
	t          *testing.T
	srv        *sshdtest.Server
	dir        string
	authorized string
	config     *Config
}

func newRemembering(t *testing.T) *remembering {
	t.Helper()
	dir := testenv.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	r := &remembering{t: t, dir: dir, authorized: filepath.Join(dir, "authorized")}
	var keys []string
	for _, name := range []string{"a", "b", "c"} {
		keys = append(keys, keygen(t, dir, name, "-t", "ed25519"))
	}
	r.srv = sshdtest.Start(t, sshdtest.Config{Options: []string{"AuthorizedKeysFile " + r.authorized}})
	r.config = authConfig(t, r.srv, nil, "IdentitiesOnly=no", "IdentityAgent="+startAgent(t, keys...))
	r.config.StateDir = filepath.Join(dir, "cache", "gpg-bridge")
	return r
}

// offers is how many keys a log-in takes with these let in.
func (r *remembering) offers(letIn ...string) int {
	r.t.Helper()
	var lines []string
	for _, name := range letIn {
		lines = append(lines, publicLine(r.t, filepath.Join(r.dir, name+".pub"))+"\n")
	}
	require.NoError(r.t, os.WriteFile(r.authorized, []byte(strings.Join(lines, "")), 0o644))
	keys, _ := offeredTo(r.srv, func() bool { requireLogin(r.t, r.config, nil); return true })
	return len(keys)
}

func (r *remembering) file() string { return filepath.Join(r.config.StateDir, stateFileName) }

func (r *remembering) remembers() string {
	data, err := os.ReadFile(r.file())
	if err != nil {
		require.ErrorIs(r.t, err, fs.ErrNotExist)
	}
	return string(data)
}

func TestKeyMemory(t *testing.T) {
	r := newRemembering(t)
	require.Equal(t, 3, r.offers("c"))
	require.Equal(t, 1, r.offers("c"))
	require.NotContains(t, r.remembers(), r.srv.Host)
	for path, mode := range map[string]fs.FileMode{r.config.StateDir: 0o700, r.file(): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}
	require.Equal(t, 3, r.offers("b"), "c first, then a and b")
	require.Equal(t, 1, r.offers("b"))
	require.Equal(t, 2, r.offers("a"), "b first")
	require.Equal(t, 1, r.offers("a"))
	require.Empty(t, r.remembers(), "the first of the list needs no memory")

	require.Equal(t, 3, r.offers("c"))
	r.config.IdentityFiles = []string{filepath.Join(r.dir, "b")}
	require.Equal(t, 1, r.offers("b", "c"), "another list: the key that the user names comes first")
}

func TestKeyMemoryIsOnlyTheUsersOwn(t *testing.T) {
	for name, spoil := range map[string]func(r *remembering){
		"directory open":  func(r *remembering) { require.NoError(t, os.Chmod(r.config.StateDir, 0o750)) },
		"file open":       func(r *remembering) { require.NoError(t, os.Chmod(r.file(), 0o640)) },
		"file of another": func(r *remembering) { require.NoError(t, os.Chown(r.file(), 1, 1)) },
		"directory of another": func(r *remembering) {
			require.NoError(t, os.Chown(r.config.StateDir, 1, 1))
		},
		"link": func(r *remembering) {
			require.NoError(t, os.Rename(r.file(), r.file()+"2"))
			require.NoError(t, os.Symlink(r.file()+"2", r.file()))
		},
		"too large": func(r *remembering) {
			require.NoError(t, os.WriteFile(r.file(), []byte(r.remembers()+strings.Repeat("x", maxStateSize)), 0o600))
		},
		"a file in its place": func(r *remembering) {
			require.NoError(t, os.RemoveAll(r.config.StateDir))
			require.NoError(t, os.WriteFile(r.config.StateDir, nil, 0o600))
		},
		"off": func(r *remembering) { r.config.StateDir = "" },
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getuid() != 0 && strings.Contains(name, "another") {
				testenv.Missing(t, "not root: no file of another can be made")
			}
			r := newRemembering(t)
			require.Equal(t, 3, r.offers("c"))
			spoil(r)
			require.Equal(t, 3, r.offers("c"))
		})
	}
}

func TestStateFileIsBounded(t *testing.T) {
	s := &stateFile{dir: filepath.Join(t.TempDir(), "d"), log: quietLog()}
	for i := range maxStateEntries + 10 {
		s.put(fmt.Sprint("key", i), "value")
	}
	require.Empty(t, s.get("key9"))
	require.Equal(t, "value", s.get("key10"))
	s.put("key10", "other")
	require.Equal(t, "other", s.get("key10"))
	s.put("key10", "")
	require.Empty(t, s.get("key10"))
	entries, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing temporary is left")
}

// What the hint names is not asked for: an encrypted file stays where it is.
func TestKeyMemoryAsksNothing(t *testing.T) {
	dir := t.TempDir()
	locked, plain := keygen(t, dir, "locked", "-t", "ed25519", "-N", "sesame"), keygen(t, dir, "plain", "-t", "ed25519")
	srv := serverFor(t, locked+".pub")
	c := authConfig(t, srv, []string{plain, locked})
	c.StateDir = filepath.Join(dir, "state")
	for range 2 {
		keys, _ := offeredTo(srv, func() bool { requireLogin(t, c, &script{answers: []string{"sesame"}}); return true })
		require.Len(t, keys, 2)
	}
}
