package bridge

import (
	"context"
	"errors"
	"sync"

	"gpg-bridge/agentside"
	"gpg-bridge/remoteside"
	"gpg-bridge/remoteside/compat"
)

// A Local is the user's side: the agent, and the keyring with the public keys.
type Local struct {
	Agent *agentside.Agent

	// Keyring is where the public keys are; the zero value is that of this
	// process.
	Keyring agentside.Keyring

	// Keys name the public keys that the host shall have; NoKeys means none. If
	// neither is set, the host gets those of all local secret keys.
	Keys   []string
	NoKeys bool

	// NoCompat passes on what an agent refuses to a newer gpg; see package compat.
	NoCompat bool
	keygrips keygrips

	// PromptRefused, where not nil, is told of every operation that failed because its
	// prompt would have been misplaced. It must not block.
	PromptRefused func(*PromptError)
	prompts       promptCache

	gate gate // for all conversations but the check's
}

// Connect opens a conversation with the agent, for a remoteside.Server, as soon
// as the agent can take one more.
func (l *Local) Connect(ctx context.Context) (remoteside.Agent, error) {
	return l.connect(ctx, l.promptRefused)
}

// connect tells refused of every operation that failed because its prompt would have been
// misplaced.
func (l *Local) connect(ctx context.Context, refused func(*PromptError)) (remoteside.Agent, error) {
	return l.gate.connect(ctx, func(ctx context.Context) (remoteside.Agent, error) { return l.dial(ctx, refused) })
}

func (l *Local) dial(ctx context.Context, refused func(*PromptError)) (remoteside.Agent, error) {
	session, err := l.openSession(ctx, refused)
	if err != nil {
		return nil, err
	}
	if l.NoCompat {
		return session, nil
	}
	return compat.New(ctx, session, l.secretKeygrips), nil
}

// A Finding is what the check of the local side found.
type Finding struct {
	// Err says why the agent cannot be used; nil: it answered, and proved
	// that the connection is a restricted one.
	Err error

	// Wanted are the public keys that the host shall have. KeysErr says why
	// they could not be listed; the bridge works without.
	Wanted  []agentside.Key
	KeysErr error

	// NoSecretKey: the user of a good agent has none, as far as gpg knows.
	NoSecretKey bool
}

// Check connects to the agent once and lists the keys, concurrently. It is made before the
// host is touched, when it must be known what the bridge has to offer. Each program that it
// runs has a few seconds, and all together about ten.
func (l *Local) Check(ctx context.Context) Finding {
	var found Finding
	var both sync.WaitGroup
	listing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	both.Go(func() {
		if found.Err = l.tryAgent(ctx); isSilent(found.Err) {
			cancel(errSilentAgent)
		}
	})
	both.Go(func() { found.Wanted, found.KeysErr = l.wanted(listing) })
	both.Wait()
	if errors.Is(context.Cause(listing), errSilentAgent) {
		found.KeysErr = nil // Err says it already
	}
	found.NoSecretKey = found.Err == nil && found.KeysErr == nil && len(found.Wanted) == 0 && !l.NoKeys && len(l.Keys) == 0
	return found
}

// errSilentAgent ends the listing of the secret keys: gpg asks the agent for them, and
// waits without limit.
var errSilentAgent = errors.New("the agent does not answer")

// isSilent reports whether the agent, or the program that finds it, did not answer in time.
func isSilent(err error) bool {
	return isUngreeted(err) || errors.Is(err, context.DeadlineExceeded)
}

func (l *Local) tryAgent(ctx context.Context) error {
	session, err := l.Agent.Connect(ctx)
	if err != nil {
		return err
	}
	return session.Close() // a BYE would wait for the answer
}

func (l *Local) wanted(ctx context.Context) ([]agentside.Key, error) {
	if l.NoKeys {
		return nil, nil
	}
	return l.Keyring.PublicKeys(ctx, l.Keys)
}
