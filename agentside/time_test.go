package agentside

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
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
