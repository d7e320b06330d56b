package agentside

import (
	"bufio"
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
)

// countingConn is the connection to an agent that takes all.
type countingConn struct {
	net.Conn
	taken     bytes.Buffer
	writes    int
	deadlines []time.Time
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.writes++
	return c.taken.Write(p)
}

func (c *countingConn) SetWriteDeadline(at time.Time) error {
	c.deadlines = append(c.deadlines, at)
	return nil
}

func dataLine(length int) []byte { return []byte("D " + strings.Repeat("x", length-3) + "\n") }

// TestBlockIsFewWrites: a block that fits the buffer is one write, with no deadline
// to set; a greater one leaves in few, each with a deadline, and none is left
// behind for the next command.
func TestBlockIsFewWrites(t *testing.T) {
	for _, c := range []struct{ size, most int }{
		{0, 1}, // END alone
		{1024, 1},
		{writeBuffer - len("END\n"), 1},
		{writeBuffer, 2},
		{writeBuffer + 1024, 2},
		{assuan.BulkSize, 3},
		{10 * assuan.BulkSize, 12},
	} {
		conn := &countingConn{}
		s := &Session{state: stateReady, conn: conn, out: bufio.NewWriterSize(conn, writeBuffer)}
		var bulk *bufio.Writer
		for left := c.size; left > 0; left -= min(left, 1000) {
			if rest := left - 1000; rest > 0 && rest < 3 { // which is no line
				require.NoError(t, s.WriteLine(dataLine(990)))
				left += 10
				continue
			}
			require.NoError(t, s.WriteLine(dataLine(min(left, 1000))))
			if bulk == nil && s.out.Size() == assuan.BulkSize {
				bulk = s.out
			}
		}
		if c.size <= writeBuffer {
			require.Zero(t, conn.writes, "%d bytes fit", c.size)
			require.Empty(t, conn.deadlines)
		}
		require.Equal(t, c.size > writeBuffer, bulk != nil, "who says little takes little memory")
		require.True(t, bulk == nil || bulk == s.out, "one greater buffer is enough")
		require.NoError(t, s.WriteLine([]byte("END\n")))
		require.Equal(t, c.size+len("END\n"), conn.taken.Len())
		require.LessOrEqual(t, conn.writes, c.most, "%d bytes", c.size)
		require.Equal(t, c.size > writeBuffer-len("END\n"), len(conn.deadlines) > 0, "%d bytes", c.size)
		if len(conn.deadlines) > 0 {
			require.Zero(t, conn.deadlines[len(conn.deadlines)-1])
		}
		conn.deadlines = nil
		s.state = stateReady
		require.NoError(t, s.WriteLine([]byte("NOP\n")))
		require.Empty(t, conn.deadlines, "a command cannot get stuck")
	}
}
