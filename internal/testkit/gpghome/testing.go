package gpghome

import (
	"testing"

	"gpg-bridge/internal/testkit/env"
)

// ForTest makes a home that is closed when the test ends. Without GnuPG the
// test is skipped, or fails where env.RequireTools is set.
func ForTest(t testing.TB) *Home {
	t.Helper()
	return ForTestWith(t, "")
}

// ForTestWith is ForTest with the programs of a directory; see NewWith.
func ForTestWith(t testing.TB, programs string) *Home {
	t.Helper()
	for _, tool := range []string{"gpg", "gpgconf", "gpg-agent", "gpg-connect-agent"} {
		env.Tool(t, tool)
	}
	h, err := NewWith(programs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return h
}
