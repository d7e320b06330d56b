// Package notice decides how often the user is told about what happens again and again,
// possibly as often as a host likes. There are two rules. Events that each mean something
// to the user, such as a refused use of a key, are reported at most once in a while
// (Limit): in an hour of them the user hears several times. A trouble that comes and goes,
// such as a host that answers only now and then, is reported once, until there has been
// none for long (Trouble): in an hour of it the user hears once.
package notice

import "time"

// Every is how often, at most, all processes of a target together tell the user that there
// is no bridge, or what it refused.
const Every = time.Minute

// A Limit lets one notice through in a while. The zero value is ready for use, by one
// goroutine at a time.
type Limit struct {
	last time.Time // when it last let one through
}

// Allow reports whether the user is to be told now: whether it last said so at least every
// ago.
func (l *Limit) Allow(every time.Duration) bool {
	if time.Since(l.last) < every {
		return false
	}
	l.last = time.Now()
	return true
}

// A Trouble is a trouble that comes and goes, of which the user is told each Kind of news
// once. The zero value is ready for use, by one goroutine at a time.
type Trouble[Kind comparable] struct {
	last time.Time // of the last Shows
	told map[Kind]bool
}

// Shows notes that there is trouble now, whether or not the user will be told. If there
// was none for longer than calm, it is a new one, of which the user has not been told
// anything.
func (t *Trouble[Kind]) Shows(calm time.Duration) {
	if time.Since(t.last) > calm {
		clear(t.told)
	}
	t.last = time.Now()
}

// First reports whether the user has not yet been told news of this kind, and notes that
// they are told now.
func (t *Trouble[Kind]) First(kind Kind) bool {
	if t.told[kind] {
		return false
	}
	if t.told == nil {
		t.told = map[Kind]bool{}
	}
	t.told[kind] = true
	return true
}
