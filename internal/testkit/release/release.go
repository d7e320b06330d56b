// Package release gives tests a host of another Debian release than this
// machine's, with real other versions of GnuPG and of OpenSSH. host.sh builds the
// hosts, as directories; `make test` has it do so where it can. A test whose host is
// missing is skipped with the reason, or fails if env.RequireTools is set.
//
// A host shares this machine's network, accounts, /home and /tmp. Each of its programs
// runs in a mount namespace, which ends with the program.
package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gpg-bridge/internal/testkit/env"
)

// SuitesVariable is the environment variable that names the Debian suites to
// test with, separated by commas.
const SuitesVariable = "GPG_BRIDGE_HOSTS"

const defaultSuites = "trixie" // GnuPG 2.4.7, OpenSSH 10.0

// Suites returns the Debian suites to test with.
func Suites() []string {
	suites := os.Getenv(SuitesVariable)
	if suites == "" {
		suites = defaultSuites
	}
	return strings.Split(suites, ",")
}

// Inside returns the words that, put before a command, run it on the host, with the host's
// program.
func Inside(t testing.TB, suite string) []string {
	t.Helper()
	inside := []string{env.Tool(t, "sh"), script(t), "run", suite}
	if said, err := exec.Command(inside[0], append(inside[1:], "true")...).CombinedOutput(); err != nil {
		env.Missing(t, strings.TrimSpace(string(said)))
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
		path := filepath.Join(dir, "internal", "testkit", "release", "host.sh")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("host.sh is not in the tree that the test runs in")
		}
		dir = filepath.Dir(dir)
	}
}

// GnuPG makes a directory with the host's GnuPG programs for a gpghome.Home on this machine, so
// that it is a laptop of another release.
func GnuPG(t testing.TB, suite string) string {
	t.Helper()
	inside := Inside(t, suite)
	dir := env.ShortDir(t)
	for _, name := range []string{"gpg", "gpgconf", "gpg-agent", "gpg-connect-agent"} {
		text := "#!/bin/sh\nexec '" + strings.Join(inside, "' '") + "' " + name + ` "$@"` + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
