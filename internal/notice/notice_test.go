package notice

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An event is something that happens, and whether the user is to be told.
type event struct {
	after time.Duration // the one before
	kind  string
	told  bool
}

func TestLimit(t *testing.T) {
	for name, events := range map[string][]event{
		"the first one":     {{0, "", true}},
		"at once again":     {{0, "", true}, {0, "", false}},
		"a little too soon": {{0, "", true}, {time.Minute - 1, "", false}},
		"in time":           {{0, "", true}, {time.Minute, "", true}, {time.Minute - 1, "", false}},
		"what is refused does not put it off": {
			{0, "", true}, {30 * time.Second, "", false}, {30 * time.Second, "", true},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l Limit
			for i, e := range events {
				time.Sleep(e.after)
				require.Equal(t, e.told, l.Allow(time.Minute), "%s: %d", name, i)
			}
		})
	}
}

// Whenever they come, two that are told are that time apart, and none is withheld after it.
func TestLimitIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limit
		var last time.Time
		for range 10000 {
			time.Sleep(rand.N(20 * time.Second))
			due := last.IsZero() || time.Since(last) >= time.Minute
			require.Equal(t, due, l.Allow(time.Minute))
			if due {
				last = time.Now()
			}
		}
	})
}

func TestTrouble(t *testing.T) {
	for name, events := range map[string][]event{
		"each kind once":              {{0, "a", true}, {0, "a", false}, {0, "b", true}, {0, "b", false}, {0, "a", false}},
		"calm, but not for long":      {{0, "a", true}, {time.Hour, "a", false}},
		"calm for long":               {{0, "a", true}, {time.Hour + 1, "a", true}, {0, "a", false}},
		"trouble that is not told":    {{0, "a", true}, {time.Hour, "a", false}, {1, "a", false}},
		"trouble of another kind":     {{0, "a", true}, {time.Hour, "b", true}, {1, "a", false}},
		"calm for long, for any kind": {{0, "a", true}, {0, "b", true}, {time.Hour + 1, "b", true}, {0, "a", true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var trouble Trouble[string]
			for i, e := range events {
				time.Sleep(e.after)
				trouble.Shows(time.Hour)
				require.Equal(t, e.told, trouble.First(e.kind), "%s: %d", name, i)
			}
		})
	}
}

// Whenever the trouble comes and goes, news is told again exactly if the trouble has shown
// since after a long calm.
func TestTroubleIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trouble Trouble[int]
		var last time.Time
		var anew []time.Time // when it has shown after a long calm
		var told [3]time.Time
		for range 10000 {
			time.Sleep(rand.N(80 * time.Minute))
			if rand.N(4) > 0 {
				trouble.Shows(time.Hour)
				if time.Since(last) > time.Hour {
					anew = append(anew, time.Now())
				}
				last = time.Now()
			}
			if kind := rand.N(len(told)); rand.N(2) > 0 {
				due := told[kind].IsZero() || len(anew) > 0 && anew[len(anew)-1].After(told[kind])
				require.Equal(t, due, trouble.First(kind))
				if due {
					told[kind] = time.Now()
				}
			}
		}
		require.Greater(t, len(anew), 100)
	})
}
