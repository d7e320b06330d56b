package agentside

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stubborn is an agent's connection of which each write is scripted.
type stubborn struct {
	net.Conn
	takes     []int // bytes; every write then runs into its deadline
	deadlines int
}

func (c *stubborn) Write(p []byte) (int, error) {
	if len(c.takes) == 0 {
		panic("it was written to although it takes nothing any more")
	}
	n := min(c.takes[0], len(p))
	c.takes = c.takes[1:]
	return n, os.ErrDeadlineExceeded
}

func (c *stubborn) SetWriteDeadline(time.Time) error {
	c.deadlines++
	return nil
}

// TestBulkWriterGivesUp: the time begins anew for as long as the agent takes
// something, and is over when it takes nothing.
func TestBulkWriterGivesUp(t *testing.T) {
	for takes, want := range map[*[]int]int{{0}: 0, {1, 0}: 1, {3, 1, 0}: 4} {
		conn := &stubborn{takes: *takes}
		n, err := bulkWriter{conn}.Write([]byte("D 0123456789\n"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, want, n)
		require.Equal(t, len(*takes)-1, conn.deadlines)
		require.Empty(t, conn.takes)
	}
}
