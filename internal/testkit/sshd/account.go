package sshd

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gpg-bridge/internal/testkit/env"
)

const (
	standardPath   = "/usr/local/bin:/usr/bin:/bin:/usr/games"
	accountTimeout = 30 * time.Second
)

// AccountConfig says what is special about an account. The zero value is an ordinary account
// with bash.
type AccountConfig struct {
	// Shell is the login shell: a path, or a program's name.
	Shell string
	// NoGPG: no GnuPG program in the account's PATH.
	NoGPG bool
	// RuntimeDir: /run/user/UID exists, as after a login under systemd, which
	// is where GnuPG then has its sockets.
	RuntimeDir bool
}

// Account is a real Unix account, removed with its processes and files when the
// test ends.
type Account struct {
	Name string
	UID  int
	GID  int
	Home string

	shell string
	path  string // PATH for its sessions, "" for sshd's own
	t     testing.TB
}

// NewAccount makes an account with a home directory. It needs root.
func NewAccount(t testing.TB, config AccountConfig) *Account {
	t.Helper()
	if os.Geteuid() != 0 {
		env.Missing(t, "not root: no account can be made")
	}
	if config.Shell == "" {
		config.Shell = "bash"
	}
	a := &Account{Name: accountName(t), shell: env.Tool(t, config.Shell), t: t}
	t.Cleanup(a.remove)
	// `*` and not `!`: sshd lets a key in where only the password is disabled
	// (sshd(8), LOGIN PROCESS).
	must(t, accountTool(t, "useradd", "-m", "-U", "-p", "*", "-s", a.shell, a.Name))
	a.lookup()
	if config.NoGPG {
		a.path = pathWithoutGPG(t)
	}
	if config.RuntimeDir {
		must(t, os.MkdirAll(filepath.Dir(a.runtimeDir()), 0o755))
		must(t, os.Mkdir(a.runtimeDir(), 0o700))
		must(t, os.Chown(a.runtimeDir(), a.UID, a.GID))
	}
	return a
}

func accountName(t testing.TB) string {
	t.Helper()
	random := make([]byte, 4)
	_, err := rand.Read(random)
	must(t, err)
	return "gbt" + hex.EncodeToString(random)
}

func (a *Account) lookup() {
	a.t.Helper()
	entry, err := user.Lookup(a.Name)
	must(a.t, err)
	a.Home = entry.HomeDir
	a.UID, err = strconv.Atoi(entry.Uid)
	must(a.t, err)
	a.GID, err = strconv.Atoi(entry.Gid)
	must(a.t, err)
}

// accountTool runs useradd or userdel, and again while another process has the lock of
// /etc/passwd (exit code 1, shadow's E_PW_UPDATE).
func accountTool(t testing.TB, name string, args ...string) error {
	t.Helper()
	deadline := time.Now().Add(accountTimeout)
	for {
		output, err := exec.Command(env.Tool(t, name), args...).CombinedOutput()
		if err == nil {
			return nil
		}
		if !strings.Contains(string(output), "cannot lock") || time.Now().After(deadline) {
			return fmt.Errorf("%s: %w: %s", name, err, output)
		}
		time.Sleep(10 * pollInterval)
	}
}

// remove ends the processes of the account, then removes what it owned.
func (a *Account) remove() {
	if a.Home == "" {
		return
	}
	if err := endAll(a.Processes); err != nil {
		a.t.Error(err)
	}
	if err := accountTool(a.t, "userdel", "-r", "-f", a.Name); err != nil {
		a.t.Error(err)
	}
	for _, dir := range []string{a.Home, a.runtimeDir()} {
		if err := os.RemoveAll(dir); err != nil {
			a.t.Error(err)
		}
	}
}

func (a *Account) runtimeDir() string { return fmt.Sprintf("/run/user/%d", a.UID) }

// pathWithoutGPG returns a directory with links to all programs but GnuPG's.
func pathWithoutGPG(t testing.TB) string {
	t.Helper()
	dir := env.ShortDir(t)
	must(t, os.Chmod(dir, 0o755))
	for _, bin := range []string{"/usr/bin", "/bin"} {
		entries, err := os.ReadDir(bin)
		must(t, err)
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), "gpg") {
				_ = os.Symlink(filepath.Join(bin, entry.Name()), filepath.Join(dir, entry.Name()))
			}
		}
	}
	return dir
}

// Processes returns the IDs of the account's processes.
func (a *Account) Processes() []int { return ofUser(a.UID) }
