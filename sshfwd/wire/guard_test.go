package wire

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Data that is read may be without end.
func TestGuardLetsReadDataPass(t *testing.T) {
	inner, outer := net.Pipe()
	defer outer.Close()
	g := Guard(inner, heapLive()+64<<20)
	go func() {
		data := make([]byte, 1<<20)
		for range 16 {
			_, _ = outer.Write(data)
		}
		_ = outer.Close()
	}()
	total, buf := 0, make([]byte, 64<<10)
	for {
		n, err := g.Read(buf)
		total += n
		if err != nil {
			require.False(t, errors.Is(err, ErrHeldTooMuch))
			break
		}
	}
	require.Equal(t, 16<<20, total)
	require.NoError(t, inner.Close())
}
