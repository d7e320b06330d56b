package wire

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A slowSocket accepts a write when the test says so.
type slowSocket struct {
	take   chan error  // what the write that is under way returns
	writes chan string // those that were taken
	late   chan struct{}
	read   sync.Once
	closed chan struct{} // by CloseRead
}

func newSlowSocket() *slowSocket {
	return &slowSocket{make(chan error), make(chan string, 10), make(chan struct{}), sync.Once{}, make(chan struct{})}
}

func (s *slowSocket) Write(p []byte) (int, error) {
	select {
	case err := <-s.take:
		if err != nil {
			return 0, err
		}
		s.writes <- string(p)
		return len(p), nil
	case <-s.late:
		return 0, os.ErrDeadlineExceeded
	}
}

func (s *slowSocket) SetWriteDeadline(t time.Time) error {
	time.AfterFunc(time.Until(t), func() { close(s.late) })
	return nil
}

func (s *slowSocket) CloseRead() error {
	s.read.Do(func() { close(s.closed) })
	return nil
}

func TestWireWriterGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowSocket()
		w := newWriter(s)
		write(t, w, "alone")
		synctest.Wait() // its write is under way
		for _, packet := range []string{"three", "at", "once"} {
			write(t, w, packet)
		}
		s.take <- nil
		s.take <- nil
		require.Equal(t, "alone", <-s.writes)
		require.Equal(t, "threeatonce", <-s.writes)
		write(t, w, "last words")
		go func() { s.take <- nil }()
		w.close()
		require.Equal(t, "last words", <-s.writes)
		_, err := w.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestWireWriterIsBounded: a Write of more than the link takes blocks, and does not hold
// up Close.
func TestWireWriterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(newSlowSocket())
		ended := make(chan error, 1)
		written := 0
		go func() {
			packet := []byte(strings.Repeat("x", 32<<10))
			for {
				if _, err := w.Write(packet); err != nil {
					ended <- err
					return
				}
				written += len(packet)
			}
		}()
		synctest.Wait()
		require.LessOrEqual(t, written, 2*(maxWaiting+32<<10))
		start := time.Now()
		w.close()
		require.Equal(t, closeTimeout, time.Since(start))
		require.Error(t, <-ended)
	})
}

func TestWireWriterTellsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowSocket()
		w := newWriter(s)
		cut := errors.New("cut")
		write(t, w, "x")
		s.take <- cut
		<-s.closed // the reader knows
		_, err := w.Write([]byte("y"))
		require.Equal(t, cut, err)
		w.close()
	})
}

func write(t *testing.T, w *writer, packet string) {
	t.Helper()
	n, err := w.Write([]byte(packet))
	require.NoError(t, err)
	require.Equal(t, len(packet), n)
}
