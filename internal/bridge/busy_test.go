package bridge

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/remoteside"
)

// A squatted is a link whose path leads to somebody who reads and says nothing, while clients
// still arrive that connected earlier, through the bridge's own forward.
type squatted struct {
	link.Link
	bridge  *Bridge
	removed string // the script that was run, or ""
}

func (s *squatted) Run(_ context.Context, _ string, stdin io.Reader, _, _ io.Writer) error {
	script, err := io.ReadAll(stdin)
	s.removed = string(script)
	return err
}

func (s *squatted) DialUnix(context.Context, string) (link.Conn, error) {
	s.bridge.arrived.Add(1)
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }() // ends with here
	return here, nil
}

type squattedForward struct{}

func (*squattedForward) Close(context.Context) error { return nil }

// TestCloseRemovesOnlyWhatIsProvedToBeOurs: if a client came that may have been our own
// connection, the path is believed to be ours, but the socket is not removed.
func TestCloseRemovesOnlyWhatIsProvedToBeOurs(t *testing.T) {
	const patience = 50 * time.Millisecond
	host := &squatted{}
	b := &Bridge{
		link:    host,
		server:  remoteside.NewServer(remoteside.Config{Log: slog.New(slog.DiscardHandler)}),
		options: Options{timing: timing{closing: patience}, Log: slog.New(slog.DiscardHandler)},
		path:    "/run/S.gpg-agent",
	}
	host.bridge = b
	require.NoError(t, b.verify(t.Context(), patience))
	require.ErrorIs(t, b.prove(t.Context(), patience), errBusy)
	require.NoError(t, b.closeAndRemove(t.Context(), &squattedForward{}, b.path))
	require.Empty(t, host.removed)
}
