package pump

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 20 * time.Second

// A rig is a pump with its user at one end and a host at the other.
type rig struct {
	pump     Pump
	in, out  *os.File // the user's ends
	listener net.Listener
	release  chan struct{} // closed to let the dial go on
	ended    chan error
}

// kinds are the pipes that ssh may give a proxy: its own, which block, and those
// of programs that do as Go does.
var kinds = map[string]func(*testing.T) (r, w *os.File){"blocking": blockingPipes, "non-blocking": goPipes}

func goPipes(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	return r, w
}

func eachKind(t *testing.T, test func(t *testing.T, pipe func(*testing.T) (r, w *os.File))) {
	for name, pipe := range kinds {
		t.Run(name, func(t *testing.T) { test(t, pipe) })
	}
}

// newRig starts a pump. Its dial waits for release.
func newRig(t *testing.T, ctx context.Context, pipe func(*testing.T) (r, w *os.File)) *rig {
	t.Helper()
	theirIn, in := pipe(t)
	out, theirOut := pipe(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &rig{in: in, out: out, listener: listener, ended: make(chan error, 1), release: make(chan struct{})}
	dial := func(ctx context.Context) (net.Conn, error) {
		select {
		case <-r.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	}
	go func() {
		err := r.pump.Run(ctx, theirIn, theirOut, dial, func() {})
		_ = theirOut.Close()
		r.ended <- err
	}()
	t.Cleanup(func() {
		for _, file := range []io.Closer{in, out, listener, theirIn} {
			_ = file.Close()
		}
	})
	return r
}

// connect lets the dial go on and returns the host's end.
func (r *rig) connect(t *testing.T) *net.TCPConn {
	t.Helper()
	close(r.release)
	conn, err := r.listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn.(*net.TCPConn)
}

// end is what Run returned.
func (r *rig) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		require.Fail(t, "the pump does not end")
		return nil
	}
}

func expect(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(from, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// What ssh says before the connection is there arrives first, at once.
func TestEarlyInput(t *testing.T) {
	eachKind(t, func(t *testing.T, pipe func(*testing.T) (r, w *os.File)) {
		r := newRig(t, t.Context(), pipe)
		_, err := io.WriteString(r.in, "SSH-2.0-early\r\n")
		require.NoError(t, err)
		for r.pump.Sent() == 0 { // it was read, and nobody has dialled
			time.Sleep(time.Millisecond)
		}
		host := r.connect(t)
		expect(t, host, "SSH-2.0-early\r\n")
		_, err = io.WriteString(host, "SSH-2.0-host\r\n")
		require.NoError(t, err)
		expect(t, r.out, "SSH-2.0-host\r\n")
		_, err = io.WriteString(r.in, "and more")
		require.NoError(t, err)
		expect(t, host, "and more")
		require.NoError(t, host.Close())
		rest, err := io.ReadAll(r.out)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.NoError(t, r.end(t))
	})
}

// More than a pipe and a socket hold, both ways at once, to a slow reader.
func TestBulk(t *testing.T) {
	eachKind(t, func(t *testing.T, pipe func(*testing.T) (r, w *os.File)) {
		text := strings.Repeat("0123456789abcdef", 1<<20)
		r := newRig(t, t.Context(), pipe)
		host := r.connect(t)
		sent := make(chan error, 2)
		for _, to := range []io.Writer{r.in, host} {
			go func() {
				_, err := io.WriteString(to, text)
				sent <- err
			}()
		}
		got := make([]byte, len(text))
		for _, from := range []io.Reader{host, r.out} {
			_, err := io.ReadFull(from, got)
			require.NoError(t, err)
			require.True(t, bytes.Equal([]byte(text), got))
		}
		require.NoError(t, errors.Join(<-sent, <-sent))
		require.EqualValues(t, len(text), r.pump.Sent())
		require.NoError(t, host.Close())
		require.NoError(t, r.end(t))
	})
}

// The end of the input is passed on, and the host may still answer.
func TestHalfClose(t *testing.T) {
	eachKind(t, func(t *testing.T, pipe func(*testing.T) (r, w *os.File)) {
		r := newRig(t, t.Context(), pipe)
		host := r.connect(t)
		_, err := io.WriteString(host, "hello")
		require.NoError(t, err)
		expect(t, r.out, "hello") // the pump knows that it is connected
		_, err = io.WriteString(r.in, "question")
		require.NoError(t, err)
		require.NoError(t, r.in.Close())
		question, err := io.ReadAll(host)
		require.NoError(t, err)
		require.Equal(t, "question", string(question))
		_, err = io.WriteString(host, "answer")
		require.NoError(t, err)
		require.NoError(t, host.Close())
		answer, err := io.ReadAll(r.out)
		require.NoError(t, err)
		require.Equal(t, "answer", string(answer))
		require.NoError(t, r.end(t))
	})
}

// A host that does not notice holds nobody.
func TestSilentHost(t *testing.T) {
	r := newRig(t, t.Context(), goPipes)
	r.connect(t)
	require.NoError(t, r.in.Close())
	require.NoError(t, r.end(t))
}

func TestInputEndsBeforeTheDial(t *testing.T) {
	r := newRig(t, t.Context(), goPipes)
	_, err := io.WriteString(r.in, "SSH-2.0-early\r\n")
	require.NoError(t, err)
	require.NoError(t, r.in.Close())
	require.NoError(t, r.end(t))
}

func TestOutputIsGone(t *testing.T) {
	eachKind(t, func(t *testing.T, pipe func(*testing.T) (r, w *os.File)) {
		r := newRig(t, t.Context(), pipe)
		host := r.connect(t)
		require.NoError(t, r.out.Close())
		_, err := io.WriteString(host, "anybody?")
		require.NoError(t, err)
		require.Error(t, r.end(t))
	})
}

func TestSignalledAtAnyTime(t *testing.T) {
	signal := errors.New("a signal")
	for name, connected := range map[string]bool{"while it dials": false, "while it pumps": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			r := newRig(t, ctx, goPipes)
			if connected {
				r.connect(t)
			}
			cancel(signal)
			require.ErrorIs(t, r.end(t), signal)
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	r, w := goPipes(t)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	var p Pump
	refused := errors.New("refused")
	err := p.Run(t.Context(), r, w, func(context.Context) (net.Conn, error) { return nil, refused }, func() { t.Error("not connected") })
	require.ErrorIs(t, err, refused)
}
