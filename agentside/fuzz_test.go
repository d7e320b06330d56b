package agentside

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/remoteside"
	"gpg-bridge/remoteside/compat"
)

// The bounds of what a session may hold of each side's, in bytes: what was read
// and is not yet a line that could be passed on, and D lines that wait for the
// end of their block.
const (
	mayHold    = assuan.BulkSize
	mayCollect = assuan.BulkSize
)

// FuzzConversation: whatever both sides say, in whatever pieces and order,
// wherever one of them stops or breaks, the two machines between them say to
// each side exactly what the model says: no byte before the agent has proved
// itself, one command at a time, no refused command, and nothing after the end,
// which comes when it must; and they hold no more than their buffers.
//
// The input is a list of happenings, divided by |, of which the first byte says
// what they are:
//
//	cBYTES  the client says this            aBYTES  the agent says this
//	C       it has said all                 A       it closes
//	E       its connection breaks           B       its connection breaks
//	F       writes to it fail from now on   W       writes to it fail from now on
//	mBYTES  it says the first eight of      T       0.6 seconds pass
//	        these six thousand times        L       6 seconds pass
//	S       the bridge is shut down
//
// The agent greets and proves itself first, unless the input begins with p.
func FuzzConversation(f *testing.F) {
	f.Add([]byte("cNOP\n|aOK\n|C|aOK closing connection\n|A"))
	f.Fuzz(func(t *testing.T, happenings []byte) {
		synctest.Test(t, func(t *testing.T) { newTalk(t).converse(happenings) })
	})
}

// A talk is a conversation under way, and the model of it.
type talk struct {
	t             *testing.T
	client, agent *wire
	m             *model
	begun         time.Time
	over          chan struct{} // closed when the server has let go of the client
	stop          context.CancelFunc

	keygrips compat.Keygrips // for FuzzConversationCompat
	d        *dialogue
	said     []byte // an incomplete line of the agent's
}

func newTalk(t *testing.T) *talk {
	return &talk{t: t, client: newWire(), agent: newWire(), m: newModel(), begun: time.Now(), over: make(chan struct{}), d: &dialogue{t: t}}
}

func (x *talk) converse(happenings []byte) {
	ctx, stop := context.WithCancel(x.t.Context())
	x.stop = stop
	srv := remoteside.NewServer(remoteside.Config{Log: slog.New(slog.DiscardHandler), Connect: x.connect})
	go func() {
		defer close(x.over)
		srv.ServeConn(ctx, x.client)
	}()
	x.check()
	happenings, raw := bytes.CutPrefix(happenings, []byte("p"))
	if !raw || x.keygrips != nil {
		x.happens('a', []byte("OK Pleased to meet you\n"))
		x.happens('a', []byte("OK\n"))
	}
	for happening := range bytes.SplitSeq(happenings, []byte("|")) {
		if len(happening) > 0 {
			x.happens(happening[0], happening[1:])
		}
	}
	x.happens('S', nil)
	require.True(x.t, x.client.isOver() && x.agent.isOver())
	require.Empty(x.t, srv.Sessions())
}

func (x *talk) connect(ctx context.Context) (remoteside.Agent, error) {
	s, err := connect(ctx, &fakeEndpoint{conn: x.agent}, prove)
	switch {
	case err != nil:
		return nil, err
	case x.keygrips != nil:
		return compat.New(ctx, s, x.keygrips), nil
	}
	return s, nil
}

// happens lets one thing happen. Who has left says nothing more.
func (x *talk) happens(what byte, data []byte) {
	if (what == 'c' || what == 'm') && x.client.end != nil || what == 'a' && x.agent.end != nil {
		return
	}
	switch what {
	case 'c':
		x.client.say(data)
		x.m.clientSays(data)
	case 'm':
		data = bytes.Repeat(data[:min(len(data), 8)], 6000)
		x.client.say(data)
		x.m.clientSays(data)
	case 'a':
		x.agentSays(data)
	case 'C':
		x.client.finish(io.EOF)
	case 'E':
		x.client.finish(syscall.ECONNRESET)
	case 'A':
		x.agentEnds(io.EOF)
	case 'B':
		x.agentEnds(syscall.ECONNRESET)
	case 'F':
		x.client.fail()
		x.m.deaf = true
	case 'W':
		x.agent.fail()
		x.m.mute = true
	case 'T':
		time.Sleep(600 * time.Millisecond)
	case 'L':
		time.Sleep(6 * time.Second)
	case 'S':
		x.stop()
		x.m.dead = true
	}
	x.check()
}

// agentSays divides what would not be read at once: how much of it the machines
// know of when they send the next command would be up to chance.
func (x *talk) agentSays(data []byte) {
	for len(data) > 0 {
		n := min(len(data), 2048)
		x.agent.say(data[:n])
		x.m.agentSays(data[:n])
		x.agentLines(data[:n])
		x.check()
		data = data[n:]
	}
}

// agentLines tells the dialogue which lines are complete by now.
func (x *talk) agentLines(piece []byte) {
	x.said = append(x.said, piece...)
	for {
		line, rest, complete := bytes.Cut(x.said, []byte("\n"))
		if !complete {
			return
		}
		x.said = rest
		x.d.says(string(line))
	}
}

func (x *talk) agentEnds(err error) {
	x.agent.finish(err)
	if !x.m.noAgent {
		x.m.agentFails()
	}
}

// check waits until nothing moves any more, and compares.
func (x *talk) check() {
	if x.keygrips != nil {
		x.checkLoosely()
		return
	}
	synctest.Wait()
	x.observe()
	closed := x.client.isOver()
	require.Equal(x.t, x.m.dead, closed, "the session's end; %s", x)
	require.True(x.t, !closed || x.agent.isOver(), "the agent's connection stays; %s", x)
	if closed {
		<-x.over
	}
	toClient, clientLate, clientTaken, _, _ := x.client.look()
	toAgent, agentLate, agentTaken, _, _ := x.agent.look()
	require.Empty(x.t, clientLate, "to the client after the end")
	require.Empty(x.t, agentLate, "to the agent after the end")
	x.compare("the client", toClient, x.m.toClient.String(), x.m.dead, 0)
	x.compare("the agent", toAgent, x.m.toAgent.String(), x.m.dead || x.m.asked || x.m.noAgent, mayCollect)
	if !x.m.dead {
		require.LessOrEqual(x.t, clientTaken-x.m.clientRead, mayHold, "held of the client's")
	}
	if !x.m.dead && !x.m.noAgent {
		require.LessOrEqual(x.t, agentTaken-x.m.agentRead, mayHold, "held of the agent's")
	}
}

// observe tells the model what depends on how far the machines have read, and
// on the clock.
func (x *talk) observe() {
	m := x.m
	_, _, _, left, at := x.client.look()
	toAgent, _, _, _, _ := x.agent.look()
	if !m.open && !m.dead && time.Since(x.begun) >= greetingTimeout {
		m.agentFails()
	}
	if left && !m.left && !m.dead {
		m.left, m.since = true, at
		m.dead = !errors.Is(x.client.end, io.EOF)
		m.clientLines()
	}
	if m.left && time.Since(m.since) >= 500*time.Millisecond {
		m.dead = true
	}
	// A full buffer is written: writeBuffer, or once a block was larger, more.
	if held := m.toAgent.Len() - len(toAgent); m.mute && m.asked && held > writeBuffer {
		m.dead = m.dead || held > mayCollect || x.client.isOver()
	}
}

// compare requires a side to have heard what it should have: a beginning of it,
// if the rest may be held back or lost.
func (x *talk) compare(who string, heard []byte, want string, partly bool, most int) {
	if !partly {
		require.Equal(x.t, want, string(heard), "%s; %s", who, x)
		return
	}
	require.True(x.t, strings.HasPrefix(want, string(heard)), "%s has heard %q, and should have %q; %s", who, heard, want, x)
	if !x.m.dead && !x.m.noAgent {
		require.LessOrEqual(x.t, len(want)-len(heard), most, "held back from %s", who)
	}
}

func (x *talk) String() string {
	return "client heard " + x.m.toClient.String() + ", agent heard " + x.m.toAgent.String()
}
