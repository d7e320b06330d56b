package promptguard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds the wait, on a busy machine, for something that must happen.
const patience = 30 * time.Second

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 10*time.Millisecond, what)
}
