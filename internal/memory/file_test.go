package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

func TestStateFileIsBounded(t *testing.T) {
	s := &File{Dir: filepath.Join(t.TempDir(), "d"), Name: "words", Log: env.QuietLog()}
	for i := range maxStateEntries + 10 {
		s.Put(fmt.Sprint("key", i), "value")
	}
	require.Empty(t, s.Get("key9"))
	require.Equal(t, "value", s.Get("key10"))
	s.Put("key10", "other")
	require.Equal(t, "other", s.Get("key10"))
	s.Put("key10", "")
	require.Empty(t, s.Get("key10"))
	entries, err := os.ReadDir(s.Dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing temporary is left")
}
