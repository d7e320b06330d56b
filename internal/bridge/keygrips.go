package bridge

import (
	"context"
	"time"
)

const (
	// keygripsAge is how long a list of keygrips is used: a gpg on the host that asks
	// for a list does not see a key that was made since.
	keygripsAge = time.Minute

	// keygripsPatience is how long a gpg on the host waits for a new list.
	keygripsPatience = 2 * time.Second
)

// keygrips remembers the keygrips of the user's secret keys. A gpg 2.3 or later
// asks for them at every run, and the local gpg takes a tenth of a second and
// more to list them. The zero value is ready.
type keygrips struct {
	turn  turn // of whoever makes or reads a list
	known []string
	err   error
	until time.Time // how long known and err are valid
}

// get returns the list, and first makes it anew with list if it is too old. Only one caller
// does that at a time; the others wait for it, no longer than ctx.
func (k *keygrips) get(ctx context.Context, list func(context.Context) ([]string, error)) ([]string, error) {
	if err := k.turn.take(ctx); err != nil {
		return nil, err
	}
	defer k.turn.leave()
	if time.Now().Before(k.until) {
		return k.known, k.err
	}
	listing, cancel := context.WithTimeout(ctx, keygripsPatience)
	defer cancel()
	known, err := list(listing)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // not remembered: it says nothing about the list
	}
	k.known, k.err, k.until = known, err, time.Now().Add(keygripsAge)
	return known, err
}

// secretKeygrips returns the keygrips of the user's secret keys for a gpg on the host. It
// returns none if the user has chosen the keys for the host, or if the agent is not the
// keyring's own, since the keyring may then lack some of the agent's keys. That gpg can still
// ask about each key it has.
func (l *Local) secretKeygrips(ctx context.Context) ([]string, error) {
	if l.NoKeys || len(l.Keys) > 0 || l.Agent.Locator.AgentSocket != "" {
		return nil, nil
	}
	return l.keygrips.get(ctx, l.Keyring.Keygrips)
}
