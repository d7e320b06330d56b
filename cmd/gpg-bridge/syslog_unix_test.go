//go:build unix

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// writes counts the writes, each of which is a message of syslog's.
type writes struct{ all [][]byte }

func (w *writes) Write(p []byte) (int, error) {
	w.all = append(w.all, bytes.Clone(p))
	return len(p), nil
}

func TestEachLineIsAMessageOfSyslog(t *testing.T) {
	var to writes
	n, err := lines{&to}.Write([]byte("gpg-bridge: wrong\ngpg-bridge: do this\n"))
	require.NoError(t, err)
	require.Equal(t, len("gpg-bridge: wrong\ngpg-bridge: do this\n"), n)
	require.Equal(t, [][]byte{[]byte("wrong"), []byte("do this")}, to.all)
}
