package background

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/target"
)

func TestStandbyIDs(t *testing.T) {
	id := strings.Repeat("0", target.IDDigits-2) + standbySuffix // it may end so
	_, ok := standbyOf(id)
	require.False(t, ok)
	of, ok := standbyOf(standbyID(id))
	require.True(t, ok)
	require.Equal(t, id, of)
	require.Equal(t, []string{id, "00"}, OnlyTargets([]string{standbyID(id), id, "00"}))
}
