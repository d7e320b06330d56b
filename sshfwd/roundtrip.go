package sshfwd

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// answerTimes measure how long the server takes to answer the requests that it gets anyway.
type answerTimes struct {
	mu    sync.Mutex
	least time.Duration
	first time.Time // of the first answer; zero if there was none yet
}

// note notes the answer to a request that was sent at asked. A refusal is an answer, the end
// of the connection is not.
func (a *answerTimes) note(asked time.Time, err error) {
	var refused *ssh.OpenChannelError
	if err != nil && !errors.As(err, &refused) {
		return
	}
	now := time.Now()
	took := now.Sub(asked)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first.IsZero() {
		a.first, a.least = now, took
	}
	a.least = min(a.least, took)
}

// RoundTrip returns the shortest time in which the server has answered a request on this
// connection, which is usually little more than a round trip. first is when the first
// answer came, zero before that: the host has then completed the log-in, too (PAM's session
// modules in sshd).
func (c *Client) RoundTrip() (least time.Duration, first time.Time) {
	c.answers.mu.Lock()
	defer c.answers.mu.Unlock()
	return c.answers.least, c.answers.first
}
