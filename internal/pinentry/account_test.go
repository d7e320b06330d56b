package pinentry

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A fakeConnection is listed, and counted, during two spans of time.
type fakeConnection struct {
	connection
	listed, counted [2]time.Duration // unlisted: a container's
}

// A fakeAgent has connections that begin and end while they are counted.
type fakeAgent struct {
	connections []fakeConnection
	began       time.Time
	delay       func() time.Duration // of an answer, before and after it is found
}

func (f *fakeAgent) at(span [2]time.Duration) bool {
	now := time.Since(f.began)
	return span[0] <= now && now < span[1]
}

func (f *fakeAgent) list() (Connections, error) {
	time.Sleep(f.delay())
	defer func() { time.Sleep(f.delay()) }()
	var listed []connection
	for _, c := range f.connections {
		if f.at(c.listed) {
			listed = append(listed, c.connection)
		}
	}
	return newConnections(listed), nil
}

func (f *fakeAgent) count() (all int, sure bool, err error) {
	sure = !slices.ContainsFunc(f.connections, func(c fakeConnection) bool {
		return c.end == endOwn && f.at([2]time.Duration{c.listed[0], c.counted[0]})
	})
	time.Sleep(f.delay())
	defer func() { time.Sleep(f.delay()) }()
	for _, c := range f.connections {
		if f.at(c.counted) {
			all++
		}
	}
	return all, sure, nil
}

func (f *fakeAgent) account(t *testing.T) (Clients, error) {
	t.Helper()
	f.began = time.Now()
	return AccountFor(t.Context(), f.list, f.count)
}

var (
	always = [2]time.Duration{0, time.Hour}
	never  = [2]time.Duration{}
)

func ownConnection() fakeConnection {
	return fakeConnection{connection{1, endOwn}, always, always}
}

// TestContainerIsNotHidden: whatever begins and ends meanwhile, a client that the system
// does not list is never left out. The agent begins to count a connection some time after
// it is listed, and stops some time after it no longer is.
func TestContainerIsNotHidden(t *testing.T) {
	t.Parallel()
	told, unsettled := 0, 0
	for seed := range uint64(500) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
			agent := fakeAgent{delay: func() time.Duration { return upTo(5 * time.Millisecond) }}
			agent.connections = []fakeConnection{ownConnection(), {connection{2, endForeign}, never, always}}
			for i := range random.IntN(60) {
				begin := upTo(time.Second) - 50*time.Millisecond
				end := begin + upTo(100*time.Millisecond)
				whose := []clientEnd{endOwn, endGone}[random.IntN(2)]
				started := begin + upTo(accountPause)
				if whose == endOwn {
					started = begin + upTo(10*accountPause)
				}
				agent.connections = append(agent.connections, fakeConnection{
					connection{uint32(3 + i), whose}, [2]time.Duration{begin, end},
					[2]time.Duration{started, max(started, end) + upTo(50*time.Millisecond)},
				})
			}
			clients, err := agent.account(t)
			if errors.Is(err, ErrUnsettled) {
				unsettled++
				return
			}
			told++
			require.NoError(t, err, "seed %d", seed)
			require.Positive(t, clients.Foreign, "seed %d", seed)
		})
	}
	require.Greater(t, told, 50)
	require.Greater(t, unsettled, 50)
}

// TestNobodyIsMadeUp: connections of our own that begin and end meanwhile are not taken for
// another's.
func TestNobodyIsMadeUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
			agent := fakeAgent{delay: func() time.Duration { return upTo(5 * time.Millisecond) }}
			agent.connections = []fakeConnection{ownConnection(), {connection{2, endGone}, always, always}}
			for i := range accountBeyond - 1 {
				end := upTo(300 * time.Millisecond)
				agent.connections = append(agent.connections, fakeConnection{
					connection{uint32(3 + i), endOwn}, [2]time.Duration{0, end}, [2]time.Duration{0, end + upTo(accountPause)},
				})
			}
			clients, err := agent.account(t)
			require.NoError(t, err, "seed %d", seed)
			require.Zero(t, clients.Foreign, "seed %d", seed)
			require.Equal(t, 1, clients.Gone)
		})
	}
}

// TestAccountFor: one change at a time, between two questions.
func TestAccountFor(t *testing.T) {
	t.Parallel()
	container := fakeConnection{connection{2, endForeign}, never, always}
	looks := accountPause + 20*time.Millisecond // of the second list of the first try, by a delay of 5 ms
	for name, test := range map[string]struct {
		connections []fakeConnection
		want        Clients
		err         error
	}{
		"nothing else":          {nil, Clients{Own: 1}, nil},
		"a container's":         {[]fakeConnection{container}, Clients{Own: 1, Foreign: 1}, nil},
		"another's":             {[]fakeConnection{{connection{2, endForeign}, always, always}}, Clients{Own: 1, Foreign: 1}, nil},
		"one that has gone":     {[]fakeConnection{{connection{2, endGone}, always, always}}, Clients{Own: 1, Gone: 1}, nil},
		"its thread ends":       {[]fakeConnection{{connection{2, endOwn}, never, [2]time.Duration{0, 4 * accountPause}}}, Clients{Own: 1}, nil},
		"its thread never ends": {[]fakeConnection{{connection{2, endOwn}, never, always}}, Clients{Own: 1, Foreign: 1}, nil},
		"its thread begins late": {[]fakeConnection{container, {connection{3, endGone}, [2]time.Duration{accountPause, time.Hour}, [2]time.Duration{2 * accountPause, time.Hour}}},
			Clients{Own: 1, Foreign: 1, Gone: 1}, nil},
		"our own begins much later": {[]fakeConnection{container, {connection{3, endOwn}, always, [2]time.Duration{10 * accountPause, time.Hour}}},
			Clients{Own: 2, Foreign: 1}, nil},
		"it ends before the count": {[]fakeConnection{container, {connection{3, endOwn}, [2]time.Duration{0, looks}, [2]time.Duration{0, looks}}},
			Clients{Own: 1, Foreign: 1}, nil},
		"its thread never begins": {[]fakeConnection{{connection{2, endGone}, always, never}}, Clients{Own: 1, Gone: 1}, ErrUnsettled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := fakeAgent{connections: append([]fakeConnection{ownConnection()}, test.connections...)}
				agent.delay = func() time.Duration { return 5 * time.Millisecond }
				got, err := agent.account(t)
				require.ErrorIs(t, err, test.err)
				require.Equal(t, test.want, got)
			})
		})
	}
}

// TestAccountForFails: an error ends it at once, and so does the context.
func TestAccountForFails(t *testing.T) {
	t.Parallel()
	agent := fakeAgent{connections: []fakeConnection{ownConnection()}, delay: func() time.Duration { return 0 }, began: time.Now()}
	_, err := AccountFor(t.Context(), func() (Connections, error) { return nil, ErrUnknown }, agent.count)
	require.ErrorIs(t, err, ErrUnknown)
	_, err = AccountFor(t.Context(), agent.list, func() (int, bool, error) { return 0, false, errAnswer })
	require.ErrorIs(t, err, errAnswer)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errAnswer)
	_, err = AccountFor(ctx, agent.list, agent.count)
	require.ErrorIs(t, err, errAnswer)
}

var errAnswer = errors.New("no answer")

func TestListedOnce(t *testing.T) {
	t.Parallel()
	twice := newConnections([]connection{{2, endOwn}, {1, endGone}, {2, endOwn}})
	require.Equal(t, Clients{Own: 1, Gone: 1}, twice.clients(0))
}
