package remoteside

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
)

// Each write to the client is a packet: what fits the buffer is one, and a bulk is
// few.
func TestBurstIsFewWrites(t *testing.T) {
	line := []byte("D " + strings.Repeat("x", 97) + "\n")
	for _, c := range []struct{ size, most int }{
		{100, 1},
		{writeBuffer, 1},
		{writeBuffer + 100, 2},
		{assuan.BulkSize / 100 * 100, 2},
		{10 * assuan.BulkSize / 100 * 100, 12},
	} {
		s, client, _ := sessionIn(stateWaitingForAgent)
		var bulk *bufio.Writer
		for sent := len(line); sent <= c.size; sent += len(line) {
			require.Equal(t, evNone, s.send(line, sent < c.size))
			if bulk == nil && s.out.Size() == assuan.BulkSize {
				bulk = s.out
			}
		}
		require.Equal(t, c.size > writeBuffer, bulk != nil, "who says little takes little memory")
		require.True(t, bulk == nil || bulk == s.out, "one greater buffer is enough")
		require.LessOrEqual(t, client.writes, c.most, "%d bytes", c.size)
		require.Equal(t, c.size/len(line), bytes.Count(client.Bytes(), []byte("\n")))
	}
}
