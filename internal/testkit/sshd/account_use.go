package sshd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Command returns a program that runs as the account, in its home directory, with the
// environment of a login and nothing of the test's own.
func (a *Account) Command(name string, args ...string) *exec.Cmd {
	path := a.path
	if path == "" {
		path = standardPath
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = a.Home
	cmd.Env = []string{"HOME=" + a.Home, "USER=" + a.Name, "LOGNAME=" + a.Name, "SHELL=" + a.shell, "PATH=" + path}
	runAs(cmd, a.UID, a.GID)
	return cmd
}

// Run runs a script as the account with sh and returns what it printed on both
// outputs. A failure ends the test.
func (a *Account) Run(t testing.TB, script string) string {
	t.Helper()
	output, err := a.Command("/bin/sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, output)
	}
	return string(output)
}

// Path is a path in the account's home; an absolute one is left as it is.
func (a *Account) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.Home, name)
}

// ReadFile reads a file of the account; name as in Path.
func (a *Account) ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(a.Path(name))
	must(t, err)
	return data
}

// WriteFile writes a file that belongs to the account, with the directories
// that are missing (0700, the account's too); name as in Path.
func (a *Account) WriteFile(t testing.TB, name string, data []byte, mode os.FileMode) {
	t.Helper()
	path := a.Path(name)
	a.Mkdir(t, filepath.Dir(path))
	must(t, os.WriteFile(path, data, mode))
	must(t, os.Chmod(path, mode))
	must(t, os.Chown(path, a.UID, a.GID))
}

// Mkdir makes a directory of the account, 0700, with its parents.
func (a *Account) Mkdir(t testing.TB, name string) {
	t.Helper()
	path := a.Path(name)
	if _, err := os.Stat(path); err == nil {
		return
	}
	a.Mkdir(t, filepath.Dir(path))
	must(t, os.Mkdir(path, 0o700))
	must(t, os.Chown(path, a.UID, a.GID))
}
