package share

import (
	"testing"

	"github.com/Microsoft/go-winio"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/private"
)

// A pipe of ours is accepted, and one that another user was quicker to make is not.
func TestPipeOfAnother(t *testing.T) {
	d := open(t)
	listener, _, err := d.listen(testID)
	require.NoError(t, err)
	conn, err := d.dial(t.Context(), testID)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, listener.Close())

	const id = "abcdef0123456789abcd"
	name, _, err := pipeName(id)
	require.NoError(t, err)
	// Of nobody who is here; everybody may connect.
	foreign, err := winio.ListenPipe(name, &winio.PipeConfig{SecurityDescriptor: "O:S-1-5-21-1-2-3-4D:P(A;;GA;;;WD)"})
	if err != nil {
		t.Skip("only who may restore files can make another the owner: ", err)
	}
	defer foreign.Close()
	_, err = d.dial(t.Context(), id)
	var peer *private.PeerError
	require.ErrorAs(t, err, &peer)
	require.Equal(t, "S-1-5-21-1-2-3-4", peer.SID)
}
