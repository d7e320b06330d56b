// Package env gives tests what they need of the machine: the real programs, and short
// directories for Unix sockets.
package env

import (
	"os"
	"os/exec"
	"testing"
)

// RequireTools is the environment variable that turns a missing program from a
// skip into a failure. CI sets it: a skip there would look like a passed test.
const RequireTools = "GPG_BRIDGE_REQUIRE_TOOLS"

// Tool returns the path of a program, looked up in PATH and in the sbin
// directories that a user's PATH lacks. Without it the test is skipped, or
// fails where RequireTools is set.
func Tool(t testing.TB, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	Missing(t, "no "+name+" on this machine")
	return ""
}

// Missing skips the test for the reason given, or fails it where RequireTools
// is set.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(RequireTools) != "" {
		t.Fatalf("%s, and %s is set", reason, RequireTools)
	}
	t.Skip(reason)
}

// ShortDir makes a directory whose path leaves room for a socket name within
// the 107 bytes of sun_path, and removes it when the test ends.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
