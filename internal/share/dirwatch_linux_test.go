package share

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A holder notices that its files are gone, for whatever reason, long before its next
// regular check.
func TestHolderIsToldWhatVanishes(t *testing.T) {
	t.Parallel()
	dir := open(t)
	h, err := dir.Hold(testID, func() Status { return Status{State: Up} })
	require.NoError(t, err)
	defer h.Close()
	isFound := func() bool {
		h.mu.Lock()
		at := h.place
		h.mu.Unlock()
		return dir.isAt(at.lock, testID) && dir.isSocket(testID, at.socket)
	}
	for name, vanish := range map[string]func() error{
		"the socket":          func() error { return os.Remove(dir.path + "/" + testID + socketSuffix) },
		"the lock, elsewhere": func() error { return os.Rename(dir.path+"/"+testID+lockSuffix, t.TempDir()+"/lock") },
		"the directory":       func() error { return os.RemoveAll(dir.path) },
	} {
		time.Sleep(checkSoon + checkSoon/2) // then it is calm, and waits to be told
		require.NoError(t, vanish(), name)
		require.Eventually(t, isFound, watchedInterval/2, 10*time.Millisecond, name)
	}
}
