package agentside

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// hangingEndpoint is an agent that accepts no connection.
type hangingEndpoint struct{ fakeEndpoint }

func (*hangingEndpoint) Dial(ctx context.Context) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestDialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := connect(t.Context(), &hangingEndpoint{}, noCheck)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

// TestGreetingTimeout: credentials, greeting and proof have 5 seconds between
// them, and a connection that took longer is closed.
func TestGreetingTimeout(t *testing.T) {
	for name, turns := range map[string][]turn{
		"deaf":           nil,
		"silent":         {{"nonce\n", ""}},
		"only comments":  {{"nonce\n", "# wait\n"}},
		"half a line":    {{"nonce\n", "OK Pl"}},
		"no proof":       {turnGreet, {"GETINFO restricted\n", ""}},
		"endless status": {turnGreet, {"GETINFO restricted\n", "S x\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				played := make(chan error, 1)
				if turns == nil {
					played <- nil
				} else {
					go func() { played <- play(theirs, turns) }()
				}
				start := time.Now()
				_, err := connect(t.Context(), &fakeEndpoint{conn: ours}, prove)
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.Equal(t, 5*time.Second, time.Since(start))
				require.NoError(t, <-played, "the connection was not closed")
				_ = theirs.Close()
			})
		})
	}
}

// TestConnectCancelled: the caller's end is the reason, not what it broke.
func TestConnectCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errTest)
		defer cancel()
		conn := agentOf(t, turn{"nonce\n", ""})
		start := time.Now()
		_, err := connect(ctx, &fakeEndpoint{conn: conn}, noCheck)
		require.ErrorIs(t, err, errTest)
		require.NotErrorAs(t, err, new(*NoGreetingError))
		require.Equal(t, time.Second, time.Since(start))
	})
}

// TestNoResponseTimeout: a human may be looking at pinentry.
func TestNoResponseTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		var agent sync.WaitGroup
		agent.Go(func() {
			in := bufio.NewReader(theirs)
			_, _ = in.ReadString('\n')
			_, _ = io.WriteString(theirs, "OK\n")
			_, _ = in.ReadString('\n')
			time.Sleep(time.Hour)
			_, _ = io.WriteString(theirs, "OK\n")
			_ = theirs.Close()
		})
		s, err := connect(t.Context(), &fakeEndpoint{conn: ours}, noCheck)
		require.NoError(t, err)
		start := time.Now()
		got, err := s.SendCommands([]byte("PKSIGN\n"))
		require.NoError(t, err)
		require.Equal(t, "OK\n", string(got))
		require.Equal(t, time.Hour, time.Since(start))
		require.NoError(t, s.Close())
		agent.Wait()
	})
}

// TestAgentTakesNothing: an agent that was stopped in the middle of a block is
// given up, because whoever writes could be told nothing meanwhile.
func TestAgentTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe() // from which nobody reads
		s := &Session{
			state: stateReady, conn: ours, closeConn: sync.OnceValue(ours.Close),
			out: bufio.NewWriterSize(ours, writeBuffer),
		}
		data := []byte("D " + strings.Repeat("x", 997) + "\n")
		start := time.Now()
		for range 4 { // as many as fit the buffer
			require.NoError(t, s.WriteLine(data))
		}
		require.Equal(t, errTakesNothing, s.WriteLine(data))
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, stateDisconnected, s.state)
		_, err := theirs.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the connection was not closed")
	})
}

// TestSlowBlock: neither a slow agent nor a slow client is given up.
func TestSlowBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		s, data, taken := &Session{
			state: stateReady, conn: ours, closeConn: sync.OnceValue(ours.Close),
			out: bufio.NewWriterSize(ours, writeBuffer),
		}, []byte("D "+strings.Repeat("x", 997)+"\n"), 0
		var agent sync.WaitGroup
		agent.Go(func() {
			piece := make([]byte, 4096)
			for n, err := theirs.Read(piece); err == nil; n, err = theirs.Read(piece) {
				taken += n
				time.Sleep(4 * time.Second)
			}
		})
		for range 20 {
			require.NoError(t, s.WriteLine(data))
		}
		time.Sleep(time.Hour)
		require.NoError(t, s.WriteLine([]byte("END\n")))
		require.NoError(t, s.Close())
		agent.Wait()
		require.Equal(t, 20*len(data)+len("END\n"), taken)
	})
}
