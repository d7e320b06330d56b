package agentside

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/remoteside"
)

// countConn counts the writes to a connection.
type countConn struct {
	net.Conn
	writes atomic.Int64
}

func (c *countConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// relay is both machines, one behind the other, between a client and an agent
// that a test plays.
type relay struct {
	t                 *testing.T
	client, agent     net.Conn   // the test's ends
	toClient, toAgent *countConn // the machines' ends
	read              []byte     // room for receive
}

// newRelay returns a relay whose client has been greeted.
func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{t: t, read: make([]byte, 8192)}
	var clientEnd, agentEnd net.Conn
	r.client, clientEnd = net.Pipe()
	r.agent, agentEnd = net.Pipe()
	r.toClient, r.toAgent = &countConn{Conn: clientEnd}, &countConn{Conn: agentEnd}
	srv := remoteside.NewServer(remoteside.Config{
		Log: slog.New(slog.DiscardHandler),
		Connect: func(ctx context.Context) (remoteside.Agent, error) {
			return connect(ctx, &fakeEndpoint{conn: r.toAgent}, noCheck)
		},
	})
	var served sync.WaitGroup
	served.Go(func() { srv.ServeConn(t.Context(), r.toClient) })
	t.Cleanup(func() {
		_ = r.client.Close()
		_ = r.agent.Close()
		served.Wait()
	})
	r.receive(r.agent, []byte("nonce\n"))
	r.send(r.agent, []byte("OK Pleased to meet you\n"))
	r.receive(r.client, []byte("OK Pleased to meet you\n"))
	r.toClient.writes.Store(0)
	r.toAgent.writes.Store(0)
	return r
}

func (r *relay) send(conn net.Conn, data []byte) {
	if _, err := conn.Write(data); err != nil {
		r.t.Fatal(err)
	}
}

// receive reads as much as it wants, and requires it to be that. It does not
// allocate.
func (r *relay) receive(conn net.Conn, want []byte) {
	got := r.read[:len(want)]
	if _, err := io.ReadFull(conn, got); err != nil {
		r.t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		r.t.Fatalf("got %q, want %q", got, want)
	}
}

// pass sends data in at one end, at once, and receives it at the other.
func (r *relay) pass(from, to net.Conn, data []byte) {
	r.send(from, data)
	r.receive(to, data)
}

// TestRelayDoesNotAllocate: what it costs to pass a line does not grow the
// heap, in either direction and in either role.
func TestRelayDoesNotAllocate(t *testing.T) {
	r := newRelay(t)
	command, inquiry := []byte("PKDECRYPT\n"), []byte("S INQUIRE_MAXLEN 4096\nINQUIRE CIPHERTEXT\n")
	block, response := []byte("D (7:enc-val%25)\nD END\nEND\n"), []byte("S PADDING 2\nD data\nOK\n")
	require.Zero(t, testing.AllocsPerRun(200, func() {
		r.pass(r.client, r.agent, command)
		r.pass(r.agent, r.client, inquiry)
		r.pass(r.client, r.agent, block)
		r.pass(r.agent, r.client, response)
	}))
}

// TestBurstsStayTogether: lines that arrived together leave as one write, which
// on an SSH channel is one packet.
func TestBurstsStayTogether(t *testing.T) {
	r := newRelay(t)
	line := bytes.Repeat([]byte("x"), 900)
	data := append(append([]byte("D "), line...), '\n')
	burst := append(bytes.Repeat(data, 4), "OK\n"...) // as much as fits the buffers
	for _, turn := range []struct {
		from, to net.Conn
		data     []byte
		writes   *atomic.Int64
	}{
		{r.client, r.agent, []byte("PKDECRYPT\n"), &r.toAgent.writes},
		{r.agent, r.client, []byte("S INQUIRE_MAXLEN 4096\n# c\nINQUIRE CIPHERTEXT\n"), &r.toClient.writes},
		{r.client, r.agent, append(bytes.Repeat(data, 4), "END\n"...), &r.toAgent.writes},
		{r.agent, r.client, burst, &r.toClient.writes},
	} {
		turn.writes.Store(0)
		r.pass(turn.from, turn.to, turn.data)
		require.EqualValues(t, 1, turn.writes.Load(), "%.40q…", turn.data)
	}
}

// TestHalfLineHoldsNothingBack: a line that is complete leaves, whatever has
// begun behind it.
func TestHalfLineHoldsNothingBack(t *testing.T) {
	r := newRelay(t)
	r.pass(r.client, r.agent, []byte("NOP\n"))
	r.send(r.agent, []byte("S one\nS two\nS th"))
	r.receive(r.client, []byte("S one\nS two\n"))
	r.send(r.agent, []byte("ree\nOK\n"))
	r.receive(r.client, []byte("S three\nOK\n"))
	require.EqualValues(t, 2, r.toClient.writes.Load())
}

// TestBulkLeavesInGreatWrites: what is too much for a burst leaves in few
// writes, both ways.
func TestBulkLeavesInGreatWrites(t *testing.T) {
	r := newRelay(t)
	bulk := bytes.Repeat([]byte("D "+strings.Repeat("x", 998)+"\n"), 1000)
	for _, turn := range []struct {
		from, to net.Conn
		data     []byte
		writes   *atomic.Int64
	}{
		{r.client, r.agent, []byte("PKDECRYPT\n"), &r.toAgent.writes},
		{r.agent, r.client, []byte("INQUIRE CIPHERTEXT\n"), &r.toClient.writes},
		{r.client, r.agent, append(bytes.Clone(bulk), "END\n"...), &r.toAgent.writes},
		{r.agent, r.client, append(bytes.Clone(bulk), "OK\n"...), &r.toClient.writes},
	} {
		turn.writes.Store(0)
		var sent sync.WaitGroup
		sent.Go(func() { _, _ = turn.from.Write(turn.data) })
		_, err := io.ReadFull(turn.to, make([]byte, len(turn.data)))
		require.NoError(t, err)
		sent.Wait()
		require.LessOrEqual(t, turn.writes.Load(), int64(2*len(turn.data)/assuan.BulkSize+3), "%.40q…", turn.data)
	}
}
