package bridge

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/remoteside"
)

// A crowdedAgent can have a limited number of conversations. A client beyond that is
// greeted when another has left, or never, as by a gpg-agent that is out of descriptors. Its
// time is synctest's.
type crowdedAgent struct {
	places chan struct{}
	stuck  chan struct{} // if not nil and not closed, nobody is greeted

	mu           sync.Mutex
	dials, fails int
	most         int
}

const greetingTimeout = 5 * time.Second

var errNoGreeting = errors.New("no greeting")

func newCrowdedAgent(can int) *crowdedAgent {
	return &crowdedAgent{places: make(chan struct{}, can)}
}

func (a *crowdedAgent) dial(ctx context.Context) (remoteside.Agent, error) {
	a.count(func() { a.dials++ })
	timeout := time.After(greetingTimeout)
	places := a.places
	if a.stuck != nil {
		select {
		case <-a.stuck:
		default:
			places = nil
		}
	}
	select {
	case places <- struct{}{}:
		a.count(func() { a.most = max(a.most, len(a.places)) })
		return &crowdedConversation{agent: a}, nil
	case <-timeout:
		a.count(func() { a.fails++ })
		return nil, errNoGreeting
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (a *crowdedAgent) count(what func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what()
}

type crowdedConversation struct {
	remoteside.Agent
	agent *crowdedAgent
	once  sync.Once
}

func (c *crowdedConversation) Close() error {
	c.once.Do(func() { <-c.agent.places })
	return nil
}

// visit has a conversation that lasts length.
func visit(ctx context.Context, g *gate, a *crowdedAgent, length time.Duration) error {
	conversation, err := g.connect(ctx, a.dial)
	if err != nil {
		return err
	}
	time.Sleep(length)
	if err := conversation.Close(); err != nil {
		return err
	}
	return conversation.Close() // a session closes its agent twice
}

// crowd runs so many clients concurrently, and returns their errors.
func crowd(t *testing.T, clients int, visit func() error) []error {
	t.Helper()
	errs := make([]error, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { errs[i] = visit() })
	}
	all.Wait()
	return errs
}

// The agent can have fewer conversations than the gate believes, and each lasts longer than
// the greeting's timeout: clients fail, wait, and are served.
func TestGateServesEverybodyWhateverTheAgentCanHold(t *testing.T) {
	for name, test := range map[string]struct {
		can    int
		length time.Duration
	}{
		"more than the gate allows": {1000, time.Second},
		"at its limit":              {100, 8 * time.Second},
		"far below":                 {20, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g gate
				a := newCrowdedAgent(test.can)
				for i, err := range crowd(t, 1000, func() error { return visit(t.Context(), &g, a, test.length) }) {
					require.NoError(t, err, "client %d", i)
				}
				require.LessOrEqual(t, a.most, min(test.can, mostConversations))
				require.Equal(t, test.can < mostConversations, a.fails > 0)
				require.Less(t, a.fails, 1000, "they fail on and on")
				require.Zero(t, g.open)
				require.Zero(t, g.established)
				require.Empty(t, g.queue)
			})
		})
	}
}

func TestGateRisesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		a := newCrowdedAgent(40)
		crowd(t, 100, func() error { return visit(t.Context(), &g, a, 10*time.Second) })
		require.LessOrEqual(t, g.limit(), 40)
		a = newCrowdedAgent(1000) // restarted with a higher limit
		for range 100 {
			crowd(t, 500, func() error { return visit(t.Context(), &g, a, time.Second) })
		}
		require.Equal(t, mostConversations, g.limit())
		require.Equal(t, mostConversations, a.most)
	})
}

// A failure that load does not explain is returned at once.
func TestGateTellsAFailureThatIsNotLoad(t *testing.T) {
	for name, test := range map[string]struct {
		open int
		err  error
	}{
		"nobody else is there": {0, errNoGreeting},
		"few are":              {fewConversations - 1, errNoGreeting},
		"not restricted":       {fewConversations + 1, agentside.ErrUnrestricted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gate{open: test.open, established: test.open}
				dials := 0
				_, err := g.connect(t.Context(), func(context.Context) (remoteside.Agent, error) {
					dials++
					return nil, test.err
				})
				require.ErrorIs(t, err, test.err)
				require.Equal(t, 1, dials)
				require.Equal(t, test.open, g.open)
			})
		})
	}
}

// If the agent stops greeting while many conversations stay open, clients wait for it, but
// not for ever; when it goes on, so do they.
func TestGateIsNotWaitedAtForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		a := newCrowdedAgent(1000)
		for range 50 {
			_, err := g.connect(t.Context(), a.dial)
			require.NoError(t, err)
		}
		a.stuck = make(chan struct{})
		start := time.Now()
		for _, err := range crowd(t, 300, func() error { return visit(t.Context(), &g, a, time.Second) }) {
			require.ErrorIs(t, err, errNoGreeting)
		}
		require.Less(t, time.Since(start), 2*gatePatience)
		require.Equal(t, 50, g.open)

		close(a.stuck)
		for _, err := range crowd(t, 300, func() error { return visit(t.Context(), &g, a, time.Second) }) {
			require.NoError(t, err)
		}
	})
}

func TestGateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate{open: mostConversations, established: mostConversations}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, err := range crowd(t, 10, func() error { return visit(ctx, &g, newCrowdedAgent(1), 0) }) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Empty(t, g.queue)
		require.Equal(t, mostConversations, g.open)
	})
}

// Concurrent attempts that fail lower the bound once, not once each.
func TestGateIsLoweredOnceForAWave(t *testing.T) {
	g := gate{open: 102, established: 100}
	wave := g.attempt()
	require.True(t, g.fail(wave))
	require.Equal(t, 75, g.limit())
	wave.established, g.established = 0, 40
	require.True(t, g.fail(wave))
	require.Equal(t, 75, g.limit())
	require.True(t, g.fail(g.attempt()))
	require.Equal(t, 30, g.limit())
}
