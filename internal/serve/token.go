package serve

import (
	"fmt"
	"math"
	"sync"
	"time"

	"gpg-bridge/internal/ui"
	"gpg-bridge/sshfwd/login"
)

const (
	// touchAfter is how long a log-in waits for a token before the status asks for a touch: a
	// card that need not be touched signs sooner.
	touchAfter = 500 * time.Millisecond

	// WhenUsed is the pause before a try that is made only when somebody uses the bridge.
	WhenUsed = time.Duration(math.MaxInt64)
)

// A Token remembers whether the log-ins of this process need a token to be touched. Its
// methods may be called from any goroutine.
type Token struct {
	status *Status

	mu     sync.Mutex
	needed string // the key; "" for none
	now    string // the key touched in the log-in that is under way
}

// asked is [sshfwd.DialOptions.TokenAsked].
func (l *Token) asked(key login.Token) func(login.TokenUse) {
	name := key.Key + " " + key.Fingerprint
	late := time.AfterFunc(touchAfter, func() {
		l.status.Token(ui.OneLine(name))
		l.status.Problem(&TouchError{Key: name})
	})
	return func(use login.TokenUse) {
		late.Stop()
		if use.Touched || use.Err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.now = name
		}
	}
}

// dialed notes that a log-in is over. One that failed before it came to a token says
// nothing about it.
func (l *Token) dialed(err error) {
	l.mu.Lock()
	if l.now != "" || err == nil {
		l.needed = l.now
	}
	l.now = ""
	needed := l.needed
	l.mu.Unlock()
	l.status.Token(ui.OneLine(needed))
}

// Key is the one whose token the next log-in needs touched, or "".
func (l *Token) Key() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.needed
}

// A TouchError says that a log-in needs a token to be touched.
type TouchError struct {
	Key   string
	Host  string // will be logged in to when somebody uses the bridge; "": the log-in waits for the touch now
	Cause error  // why there is no connection, if Host is set
}

// Error is for the user.
func (e *TouchError) Error() string {
	if e.Host == "" {
		return fmt.Sprintf("the log-in waits for a token: key %s", e.Key)
	}
	return fmt.Sprintf("%v; the log-in needs a touch, of the token with the key %s, and is tried again when the bridge is used", e.Cause, e.Key)
}

func (e *TouchError) Unwrap() error { return e.Cause }

// Hint says what to do.
func (e *TouchError) Hint() string {
	if e.Host == "" {
		return "touch it when it blinks"
	}
	return "gpg-bridge up " + e.Host + ", and touch the token when it blinks"
}
