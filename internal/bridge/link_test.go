package bridge

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/remoteside"
)

// A downLink is a link that is known to be down.
type downLink struct{ link.Link }

func (downLink) DialUnix(context.Context, string) (link.Conn, error) {
	return nil, link.ErrUnanswered
}

// If the host was not asked since the link is down, it counts as one that does not answer.
func TestLinkThatIsDown(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	b := &Bridge{link: downLink{}, server: remoteside.NewServer(remoteside.Config{Log: log}), options: Options{Log: log}}
	require.ErrorIs(t, b.verify(t.Context(), time.Second), errUnanswered)
}
