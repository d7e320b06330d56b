package memory

import (
	"log/slog"
	"strconv"
	"time"
)

const accountMemoryName = "no-shell"

// A NoShell says that an account was found to run no shell commands. The zero value means
// that nothing is known.
type NoShell struct {
	Found time.Time // when that was found last
	Until time.Time // when it is to be checked again; zero: never
}

// Known reports whether it need not be checked again now. If the clock was ahead when it
// was found, it is still not believed for longer than Until less Found.
func (n NoShell) Known(now time.Time) bool {
	return !n.Found.IsZero() && (n.Until.IsZero() || now.Sub(n.Found).Abs() < n.Until.Sub(n.Found))
}

// word is how Until is written: in seconds of Unix time, 0 for the zero time.
func (n NoShell) word() string {
	if n.Until.IsZero() {
		return "0"
	}
	return strconv.FormatInt(n.Until.Unix(), 10)
}

func parseNoShell(found time.Time, word string) NoShell {
	until, err := strconv.ParseInt(word, 10, 64)
	switch {
	case found.IsZero() || err != nil || until < 0:
		return NoShell{}
	case until == 0:
		return NoShell{Found: found}
	}
	return NoShell{Found: found, Until: time.Unix(until, 0)}
}

// An Accounts remembers, between runs, the last 256 accounts that run no shell commands.
type Accounts struct{ answers answers }

// NewAccounts keeps the memory in a directory that only the user can enter, which is
// created when there is something to remember. With "" nothing is remembered.
func NewAccounts(dir string, log *slog.Logger) *Accounts {
	return &Accounts{newAnswers(dir, accountMemoryName, log)}
}

// NoShell returns what is remembered of the account, even if it is to be checked again.
func (m *Accounts) NoShell(account string) NoShell {
	word, found := m.answers.get(account)
	return parseNoShell(found, word)
}

// SetNoShell remembers that the account was found to run no shell commands, or with the
// zero value, that it does run them. A failure to write is only logged.
func (m *Accounts) SetNoShell(account string, n NoShell) {
	if n.Found.IsZero() {
		m.answers.forget(account)
		return
	}
	m.answers.set(account, n.word(), n.Found)
}
