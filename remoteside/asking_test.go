package remoteside

import (
	"bufio"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
)

// asked is what a server tells of the uses for which the agent may ask its user.
type asked struct {
	NopObserver
	mu      sync.Mutex
	asks    []Operation
	leaves  []Operation
	over    []Operation
	refusal string
	waits   bool // until the server ends
}

func (a *asked) config(agent *fakeagent.Agent) Config {
	locked := func(do func()) { a.mu.Lock(); defer a.mu.Unlock(); do() }
	return Config{
		Connect:   connectTo(agent),
		Observers: []Observer{a},
		Asking: func(ctx context.Context, o Operation) string {
			locked(func() { a.asks = append(a.asks, o) })
			if a.waits {
				<-ctx.Done()
			}
			return a.refusal
		},
	}
}

func (a *asked) Leaving(o Operation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaves = append(a.leaves, o)
}

func (a *asked) Operated(o Operation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = append(a.over, o)
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asks)
}

// talk is a conversation with a fake agent, seen from both ends.
type talk struct {
	t      *testing.T
	client net.Conn
	in     *bufio.Reader
	agent  *fakeagent.Agent
	ended  <-chan Report
}

func newTalk(t *testing.T, a *asked) *talk {
	t.Helper()
	return newTalkUntil(t, t.Context(), a)
}

func newTalkUntil(t *testing.T, ctx context.Context, a *asked) *talk {
	t.Helper()
	agent := fakeagent.New()
	client, ended := serve(t, ctx, a.config(agent))
	k := &talk{t, client, bufio.NewReader(client), agent, ended}
	k.gets(fakeagent.Greeting)
	return k
}

func (k *talk) gets(line string) {
	k.t.Helper()
	got, err := k.in.ReadString('\n')
	require.NoError(k.t, err)
	require.Equal(k.t, line, got)
}

func (k *talk) passes(line string) { k.says(line, line) }

func (k *talk) says(line, heard string) {
	k.t.Helper()
	fakeagent.Send(k.t, k.client, line)
	require.Equal(k.t, heard, <-k.agent.Heard)
}

func (k *talk) answers(line, got string) {
	k.t.Helper()
	k.agent.Say <- line
	k.gets(got)
}

func (k *talk) leave() {
	k.t.Helper()
	require.NoError(k.t, k.client.Close())
	<-k.ended
}

// TestAsking: the agent may ask for a signature at once, and for a decryption when it has
// the ciphertext; what it inquires with a prompt open changes nothing.
func TestAsking(t *testing.T) {
	t.Parallel()
	a := new(asked)
	k := newTalk(t, a)
	k.passes("PKSIGN\n")
	require.Equal(t, 1, a.count())
	k.answers("INQUIRE PINENTRY_LAUNCHED\n", "INQUIRE PINENTRY_LAUNCHED\n")
	k.passes("END\n")
	k.answers("OK\n", "OK\n")
	require.Equal(t, 1, a.count())

	k.passes("PKDECRYPT\n")
	k.answers("INQUIRE CIPHERTEXT\n", "INQUIRE CIPHERTEXT\n")
	k.passes("D x\n")
	require.Equal(t, 1, a.count(), "it has not all of it")
	k.passes("END\n")
	require.Equal(t, 2, a.count())
	k.answers("INQUIRE PINENTRY_LAUNCHED\n", "INQUIRE PINENTRY_LAUNCHED\n")
	k.passes("END\n")
	require.Equal(t, 2, a.count())
	k.answers("OK\n", "OK\n")

	k.passes("PKDECRYPT\n")
	k.answers("INQUIRE CIPHERTEXT\n", "INQUIRE CIPHERTEXT\n")
	k.leave()
	require.Equal(t, 2, a.count())
	require.Len(t, a.over, 3)
	require.False(t, a.over[1].Asked.Before(a.asks[1].At))
	require.True(t, a.over[2].Asked.IsZero(), "it was never complete")
	require.Empty(t, a.leaves)
}

// TestAskingRefuses: the client gets the answer, and the agent nothing to ask for.
func TestAskingRefuses(t *testing.T) {
	t.Parallel()
	a := &asked{refusal: assuan.ErrTimeout}
	k := newTalk(t, a)
	fakeagent.Send(t, k.client, "PKSIGN\n")
	k.gets(assuan.ErrTimeout)
	k.passes("PKDECRYPT\n")
	k.answers("INQUIRE CIPHERTEXT\n", "INQUIRE CIPHERTEXT\n")
	k.passes("D x\n")
	k.says("END\n", "CAN\n")
	k.answers("ERR 67109141 IPC call has been cancelled <GPG Agent>\n", assuan.ErrTimeout)
	k.passes("NOP\n")
	k.answers("OK\n", "OK\n")
	k.leave()
	require.Equal(t, "PKDECRYPT\nD x\nCAN\nNOP\nBYE\n", k.agent.Written())
	require.Len(t, a.over, 2)
	for _, o := range a.over {
		require.True(t, o.Asked.IsZero())
		require.EqualValues(t, assuan.ErrorCode([]byte(assuan.ErrTimeout)), o.Code)
	}
	require.Empty(t, a.leaves)
}

// TestLeaving: a client that has gone is told of at once, not when it is given up.
func TestLeaving(t *testing.T) {
	t.Parallel()
	a := new(asked)
	k := newTalk(t, a)
	k.passes("PKSIGN\n")
	k.leave()
	require.Len(t, a.leaves, 1)
	require.Equal(t, a.over[0].Asked, a.leaves[0].Asked)
	require.False(t, a.asks[0].Left)
	require.True(t, a.over[0].Left)
	require.True(t, a.over[0].Unanswered)
}

// TestAskingWaits: no longer than there is a server.
func TestAskingWaits(t *testing.T) {
	t.Parallel()
	a := &asked{refusal: assuan.ErrTimeout, waits: true}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	k := newTalkUntil(t, ctx, a)
	fakeagent.Send(t, k.client, "PKSIGN\n")
	require.Eventually(t, func() bool { return a.count() == 1 }, 10*time.Second, time.Millisecond)
	stop()
	<-k.ended
	require.NotContains(t, k.agent.Written(), "PKSIGN")
	require.Len(t, a.over, 1)
	require.True(t, a.over[0].Asked.IsZero())
	require.Empty(t, a.leaves)
}
