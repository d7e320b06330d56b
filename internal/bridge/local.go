package bridge

import (
	"context"
	"sync"

	"gpg-bridge/agentside"
	"gpg-bridge/remoteside"
)

// A Local is the side with the keys.
type Local struct {
	Agent *agentside.Agent

	// Keyring is where the public keys are; the zero value is that of this
	// process.
	Keyring agentside.Keyring

	// Keys name the public keys that the host shall have; NoKeys: none. With
	// neither, those of all local secret keys.
	Keys   []string
	NoKeys bool

	// NoCompat passes on what an agent refuses to a newer gpg; see
	// remoteside.Compat.
	NoCompat bool
	keygrips keygrips

	gate gate // all conversations but the check's go through it
}

// Connect opens a conversation with the agent, for a remoteside.Server, as soon
// as the agent can take one more.
func (l *Local) Connect(ctx context.Context) (remoteside.Agent, error) {
	return l.gate.connect(ctx, l.dial)
}

func (l *Local) dial(ctx context.Context) (remoteside.Agent, error) {
	session, err := l.Agent.Connect(ctx)
	if err != nil {
		return nil, err // not a typed nil
	}
	if l.NoCompat {
		return session, nil
	}
	return remoteside.Compat(ctx, session, l.secretKeygrips), nil
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
}

// Check connects to the agent once and lists the keys, both at a time. The
// host is not touched before it is known what the bridge has to offer.
func (l *Local) Check(ctx context.Context) Finding {
	var found Finding
	var both sync.WaitGroup
	both.Go(func() { found.Err = l.tryAgent(ctx) })
	both.Go(func() { found.Wanted, found.KeysErr = l.wanted(ctx) })
	both.Wait()
	return found
}

func (l *Local) tryAgent(ctx context.Context) error {
	session, err := l.Agent.Connect(ctx)
	if err != nil {
		return err
	}
	return session.Disconnect()
}

func (l *Local) wanted(ctx context.Context) ([]agentside.Key, error) {
	if l.NoKeys {
		return nil, nil
	}
	return l.Keyring.PublicKeys(ctx, l.Keys)
}
