// Package hosttest gives tests a host of another Debian release than this
// machine's: other versions of GnuPG and of OpenSSH, for real. host.sh builds the
// hosts, as folders; `make test` has it do so where it can. A test whose host is
// not there is skipped with the reason, or fails where testenv.RequireTools is
// set.
//
// A host shares this machine's network, accounts, /home and /tmp. What is mounted
// for a program of its own is in a mount namespace that ends with the program.
package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gpg-bridge/internal/testenv"
)

// SuitesVariable is the environment variable that names the Debian suites to
// test with, with commas between.
const SuitesVariable = "GPG_BRIDGE_HOSTS"

const defaultSuites = "trixie" // GnuPG 2.4.7, OpenSSH 10.0

// Suites are the Debian suites to test with.
func Suites() []string {
	suites := os.Getenv(SuitesVariable)
	if suites == "" {
		suites = defaultSuites
	}
	return strings.Split(suites, ",")
}

// Inside returns the words that make a command run on the host, when they stand
// before it: the program is then the host's.
func Inside(t testing.TB, suite string) []string {
	t.Helper()
	inside := []string{testenv.Tool(t, "sh"), script(t), "run", suite}
	if said, err := exec.Command(inside[0], append(inside[1:], "true")...).CombinedOutput(); err != nil {
		testenv.Missing(t, strings.TrimSpace(string(said)))
	}
	return inside
}

// script finds host.sh in the source tree that the test runs in.
func script(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		path := filepath.Join(dir, "internal", "hosttest", "host.sh")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("host.sh is not in the tree that the test runs in")
		}
		dir = filepath.Dir(dir)
	}
}

// GnuPG makes a directory with programs that are the host's GnuPG, for a
// gpghome.Home here: a laptop of another release.
func GnuPG(t testing.TB, suite string) string {
	t.Helper()
	inside := Inside(t, suite)
	dir := testenv.ShortDir(t)
	for _, name := range []string{"gpg", "gpgconf", "gpg-agent", "gpg-connect-agent"} {
		text := "#!/bin/sh\nexec '" + strings.Join(inside, "' '") + "' " + name + ` "$@"` + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
