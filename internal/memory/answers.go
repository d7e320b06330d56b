package memory

import (
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// answers remember, between runs, one answer of each account and when it was given, for
// the last 256 accounts. The file has the time, in seconds of Unix time, a colon, and the
// answer.
type answers struct{ file *File }

// newAnswers keeps them in a directory that only the user can enter, which is created when
// there is something to remember. With "" nothing is remembered.
func newAnswers(dir, name string, log *slog.Logger) answers {
	return answers{&File{Dir: dir, Name: name, Log: log}}
}

// get returns what is remembered of the account; the time is zero if that is nothing, or
// cannot be read, or account is "".
func (a answers) get(account string) (word string, at time.Time) {
	if a.file.Dir == "" || account == "" {
		return "", time.Time{}
	}
	number, word, _ := strings.Cut(a.file.Get(account), ":")
	seconds, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seconds <= 0 {
		return "", time.Time{}
	}
	return word, time.Unix(seconds, 0)
}

// set remembers a word, which has no spaces. A failure to write is only logged.
func (a answers) set(account, word string, at time.Time) {
	if a.file.Dir == "" || account == "" {
		return
	}
	a.file.Put(account, strconv.FormatInt(at.Unix(), 10)+":"+word)
}

// forget forgets the account. If nothing is remembered it does not write.
func (a answers) forget(account string) {
	if _, at := a.get(account); !at.IsZero() {
		a.file.Put(account, "")
	}
}
