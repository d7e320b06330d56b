//go:build unix

package bridge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/pinentry"
	"gpg-bridge/remoteside"
)

// lookedAt returns an abandonedPrompts whose looks find what the test says.
func lookedAt(w *warnings) *abandonedPrompts {
	made := time.Now()
	now := func() pinentry.Instant { return pinentry.Instant(time.Since(made)) }
	return &abandonedPrompts{now: now, patience: 2 * time.Second, warn: w.add, gate: new(gate), log: quiet, wake: make(chan struct{}, 1)}
}

func askedNow() remoteside.Operation { return remoteside.Operation{Asked: time.Now()} }

func dropped(o remoteside.Operation) remoteside.Operation {
	o.At, o.Unanswered = time.Now(), true
	return o
}

// TestSameWarningIsRare: client after client waits behind a prompt and leaves, or is
// refused. The user is told of each of the two once a minute.
func TestSameWarningIsRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w warnings
		p := lookedAt(&w)
		began := time.Now()
		for time.Since(began) < 5*time.Minute-p.patience-time.Second {
			use, at := askedNow(), p.now()
			p.asking(t.Context(), use)
			time.Sleep(time.Second)
			found := promptDoubtful
			if time.Since(began)%(4*time.Second) == 0 {
				found = promptNone
			}
			p.note(scene{pending: []pinentry.Instant{at}, left: p.situation().left, counted: countTold, clients: pinentry.Clients{Gone: 10}}, found)
			p.Operated(dropped(use))
		}
		kinds := map[AbandonedError]int{}
		for _, err := range w.all() {
			kinds[*err.(*AbandonedError)]++
		}
		require.LessOrEqual(t, len(w.all()), 3*5)
		require.Equal(t, 5, kinds[AbandonedError{Refused: true}])
		require.Equal(t, 5, kinds[AbandonedError{Waits: true}])
	})
}

// TestLeftTakesPlaces: a use whose client has gone counts as a conversation until a look
// shows that the agent is done with it; with a few of them, further uses are refused.
func TestLeftTakesPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w warnings
		p := lookedAt(&w)
		uses := make([]remoteside.Operation, 10)
		for i := range uses { // concurrently: none has gone yet
			uses[i] = askedNow()
			require.Empty(t, p.asking(t.Context(), uses[i]))
		}
		for i, o := range uses[:5] {
			p.Operated(dropped(o))
			require.Equal(t, i+1, p.gate.count())
		}
		require.Equal(t, assuan.ErrTimeout, p.asking(t.Context(), askedNow()))
		refused := askedNow()
		refused.Asked = time.Time{}
		p.Operated(dropped(refused))
		require.Equal(t, 5, p.gate.count(), "it never reached the agent")
		p.Operated(uses[5])
		require.Equal(t, 5, p.gate.count(), "it was answered")

		look := func(gone int) {
			p.note(scene{left: p.situation().left, counted: countTold, clients: pinentry.Clients{Gone: gone}}, promptNone)
		}
		look(4)
		require.Equal(t, 4, p.gate.count())
		require.True(t, p.isOpen(), "uses are refused")
		require.Equal(t, assuan.ErrTimeout, p.asking(t.Context(), askedNow()))
		look(3)
		require.True(t, p.isOpen(), "they are not over")
		require.Empty(t, p.asking(t.Context(), askedNow()))
		look(0)
		require.Zero(t, p.gate.count())
		require.False(t, p.isOpen())
		require.Equal(t, mostConversations, p.gate.limit())
	})
}

// TestLeavingCounts: a client that has sent its last byte counts although its use is still
// pending.
func TestLeavingCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := lookedAt(new(warnings))
		var uses []remoteside.Operation
		for range mostLeft {
			o := askedNow()
			require.Empty(t, p.asking(t.Context(), o))
			p.Leaving(remoteside.Operation{})
			o.Left = true
			uses = append(uses, o)
		}
		require.NotEmpty(t, p.asking(t.Context(), askedNow()))
		p.Operated(uses[0]) // it had its answer
		o := askedNow()
		o.Left = true // before its use began
		require.Empty(t, p.asking(t.Context(), o))
		require.NotEmpty(t, p.asking(t.Context(), askedNow()))
		p.Operated(dropped(uses[1]))
		require.NotEmpty(t, p.asking(t.Context(), askedNow()), "it is left now")
	})
}

// TestLookThatDoesNotSettle: what an earlier look found still holds, and nothing new is done
// or said.
func TestLookThatDoesNotSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w warnings
		p := lookedAt(&w)
		p.mayEnd = true
		use := askedNow()
		require.Empty(t, p.asking(t.Context(), use))
		p.Operated(dropped(use))
		counted, clients, opened := countUnsettled, pinentry.Clients{Gone: 1}, p.now()
		p.see = func(_ context.Context, s *scene) error {
			s.prompts = []pinentry.Process{{PID: 2, Started: opened}}
			s.clients, s.counted = clients, counted
			return nil
		}
		time.Sleep(promptSlack)
		p.asking(t.Context(), askedNow()) // it waits behind the prompt
		require.False(t, p.look(t.Context()), "it may be another's")
		require.Empty(t, w.all())
		require.False(t, p.isOpen())

		counted, clients.Foreign = countTold, 1
		require.False(t, p.look(t.Context()))
		require.Len(t, w.all(), 1)
		require.True(t, p.isOpen())
		counted = countUnsettled
		require.False(t, p.look(t.Context()))
		require.True(t, p.isOpen())
		require.Len(t, p.situation().left, 1)
		counted, clients.Foreign = countTold, 0
		require.True(t, p.look(t.Context()))
		require.Len(t, w.all(), 1)
	})
}

// TestUseThatBeginsDuringALook: the prompt whose client has left is closed, and the prompt
// that is seen was opened for a use that began during the look.
func TestUseThatBeginsDuringALook(t *testing.T) {
	t.Parallel()
	p := lookedAt(new(warnings))
	p.mayEnd = true
	use := askedNow()
	require.Empty(t, p.asking(t.Context(), use))
	p.Operated(dropped(use))
	p.see = func(_ context.Context, s *scene) error {
		p.asking(t.Context(), askedNow())
		s.prompts = []pinentry.Process{{PID: 2, Started: p.now()}}
		s.clients, s.counted = pinentry.Clients{Own: 2, Gone: 1}, countTold
		return nil
	}
	require.False(t, p.look(t.Context()))
}

// TestSleep: which of two things began first is known however long the machine has slept in
// between. Go's monotonic clock stops meanwhile.
func TestSleep(t *testing.T) {
	t.Parallel()
	clock := pinentry.Instant(time.Hour)
	p := lookedAt(new(warnings))
	p.mayEnd, p.now = true, func() pinentry.Instant { return clock }
	var opened pinentry.Instant
	p.see = func(_ context.Context, s *scene) error {
		s.prompts = []pinentry.Process{{PID: 2, Started: opened}}
		s.clients, s.counted = pinentry.Clients{Own: len(s.pending), Gone: 1}, countTold
		return nil
	}
	begin := func() remoteside.Operation {
		use := askedNow()
		require.Empty(t, p.asking(t.Context(), use))
		clock = clock.Add(time.Second)
		opened = clock
		return use
	}
	left := begin()
	clock = clock.Add(8 * time.Hour) // asleep
	p.Operated(dropped(left))
	require.True(t, p.look(t.Context()), "nobody waits for it")
	begin()
	clock = clock.Add(8 * time.Hour)
	require.False(t, p.look(t.Context()), "one of ours waits for it")
}

// TestRoomIsWaitedFor: before a use is refused, the next look is waited for, which may show
// that the agent is done with some of the others.
func TestRoomIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := lookedAt(new(warnings))
		for range mostLeft {
			o := askedNow()
			require.Empty(t, p.asking(t.Context(), o))
			p.Operated(dropped(o))
		}
		asked, answers := p.now(), make(chan string)
		for range 3 {
			go func() { answers <- p.asking(t.Context(), askedNow()) }()
		}
		time.Sleep(firstPromptLook)
		require.Empty(t, p.situation().pending)
		p.note(scene{left: p.situation().left, counted: countTold, clients: pinentry.Clients{Gone: mostLeft - 1}}, promptNone)
		for range 3 {
			require.Empty(t, <-answers)
		}
		began := asked.Add(firstPromptLook)
		require.Equal(t, []pinentry.Instant{began, began, began}, p.situation().pending, "the agent could not ask earlier")
		require.False(t, p.refused)

		o := askedNow()
		require.Empty(t, p.asking(t.Context(), o))
		p.Operated(dropped(o))
		asked = p.now()
		require.Equal(t, assuan.ErrTimeout, p.asking(t.Context(), askedNow()))
		require.Equal(t, p.patience, p.now().Sub(asked))
		require.True(t, p.refused)

		p.refused = false
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		require.Equal(t, assuan.ErrTimeout, p.asking(ctx, askedNow()))
		require.False(t, p.refused, "the bridge ends")
		require.Len(t, p.situation().pending, 3)
	})
}
