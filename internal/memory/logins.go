package memory

import (
	"encoding/base64"
	"log/slog"
	"time"
)

const (
	loginMemoryName = "login-home"

	// maxLoginAnswer is how long an answer may be, in bytes, so that a file with the
	// most entries can still be read: each is the account, the time and, in base64,
	// the answer.
	maxLoginAnswer = 110
)

// A Logins remembers, between runs, what the login shells of the last 256 accounts have
// answered.
type Logins struct{ answers answers }

// NewLogins keeps the memory as NewAccounts does.
func NewLogins(dir string, log *slog.Logger) *Logins {
	return &Logins{newAnswers(dir, loginMemoryName, log)}
}

// Answer returns what is remembered of the account, and when it was given; the time is
// zero if that is nothing.
func (m *Logins) Answer(account string) (answer string, at time.Time) {
	word, at := m.answers.get(account)
	text, err := base64.RawURLEncoding.DecodeString(word)
	if err != nil || len(text) > maxLoginAnswer {
		return "", time.Time{}
	}
	return string(text), at
}

// SetAnswer remembers an answer of at most 110 bytes, which was given at that time. A
// longer one is not remembered. A failure to write is only logged.
func (m *Logins) SetAnswer(account, answer string, at time.Time) {
	if len(answer) <= maxLoginAnswer {
		m.answers.set(account, base64.RawURLEncoding.EncodeToString([]byte(answer)), at)
	}
}
