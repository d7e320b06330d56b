package sshfwd

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/crypto/ssh"
)

// The methods we know (RFC 4252, RFC 4256).
const (
	methodPublicKey   = "publickey"
	methodKeyboard    = "keyboard-interactive"
	methodPassword    = "password"
	maxQuestions      = 32 // in one round of keyboard-interactive
	maxKeyboardRounds = 32 // in one attempt
)

// authenticator chooses, one attempt after the other, how to log in, in ssh's
// order (sshconnect2.c): keys, then keyboard-interactive, then password, or as
// PreferredAuthentications says. One key is one attempt, so that a key whose
// use fails (refused, not touched) does not end the others' chances. It is used
// by one goroutine, the one that does the handshake.
type authenticator struct {
	ctx      context.Context
	config   *Config
	prompter Prompter // nil if nothing may be asked
	clock    *handshakeClock
	log      *slog.Logger

	tap *kexTap // set by the handshake

	started    bool   // the key exchange is over
	sessionID  []byte // of this connection
	identities []*identity
	loaded     bool
	agent      *agentConn
	last       *identity // offered in the attempt under way
	partial    int       // partial successes so far
	first      *identity // the key that was good for the first step
	memory     *keyMemory

	passwords int              // attempts
	password1 *passwordAttempt // the one under way
	keyboards int
	asked     bool // the server has asked something by keyboard-interactive
	said      int  // bytes that it said in doing so

	methods []string // what the server accepts now
	tried   []string // for the user
	useless []string // keys that could not be used, and why; for the user
	unasked bool     // BatchMode kept something from being asked
	aborted error    // a prompt failed: go no further
	failure error    // what next has returned at the end
}

func newAuthenticator(ctx context.Context, c *Config, p Prompter, clock *handshakeClock, log *slog.Logger) *authenticator {
	if c.BatchMode {
		p = nil
	}
	return &authenticator{ctx: ctx, config: c, prompter: p, clock: clock, log: log}
}

// close ends the connection to the agent.
func (a *authenticator) close() { a.agent.close() }

// next is an ssh.ClientAuthCallback. It is called after "none" has failed, and
// after each further failure or partial success.
func (a *authenticator) next(server *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	a.started, a.sessionID = true, server.Metadata.SessionID()
	a.methods = server.AllowedMethods
	if a.tap.lost() {
		return nil, nil // x/crypto knows with what
	}
	if n := len(server.PartialSuccessMethods); n > a.partial {
		a.partial = n
		a.password1 = nil
		a.succeededPartly()
	}
	a.last = nil
	for _, method := range a.order() {
		if a.aborted != nil {
			break
		}
		if !slices.Contains(a.methods, method) {
			continue
		}
		if m := a.attempt(method); m != nil {
			return m, nil
		}
	}
	a.failure = a.denied(a.aborted)
	return nil, a.failure
}

// succeededPartly: the server wants more. Keys count as not offered again but
// the one that did it (pubkey_reset in sshconnect2.c).
func (a *authenticator) succeededPartly() {
	a.log.Debug("authenticated partly")
	if a.last != nil {
		a.last.accepted = true
	}
	if a.partial == 1 {
		a.first = a.last
	}
	for _, id := range a.identities {
		id.offered, id.asked = id.accepted, false
	}
}

// succeeded is called when the log-in is over.
func (a *authenticator) succeeded() {
	if a.partial == 0 {
		a.first = a.last
	}
	if a.memory != nil && a.first != nil {
		a.memory.note(a.first)
	}
}

func (a *authenticator) order() []string {
	known := []string{methodPublicKey, methodKeyboard, methodPassword}
	if len(a.config.PreferredAuthentications) == 0 {
		return known
	}
	return a.config.PreferredAuthentications
}

// attempt gives the next try by a method, nil if it has none left.
func (a *authenticator) attempt(method string) ssh.AuthMethod {
	switch {
	case method == methodPublicKey && a.config.PubkeyAuthentication:
		return a.publicKey()
	case method == methodKeyboard && a.config.KbdInteractiveAuthentication:
		return a.keyboard()
	case method == methodPassword && a.config.PasswordAuthentication:
		return a.password()
	}
	return nil
}

// denied is the error for a log-in that failed; cause may be nil.
func (a *authenticator) denied(cause error) error {
	if cause == nil && a.unasked {
		cause = ErrNoPrompt
	}
	return &AuthError{
		User: a.config.User, Host: a.config.Hostname, Methods: a.methods, Tried: a.tried, Unusable: a.useless, Err: cause,
	}
}

// notUsed keeps why a key was of no use, should the log-in fail.
func (a *authenticator) notUsed(key string, err error) {
	a.log.Warn("key not used", "key", key, "err", err)
	a.useless = append(a.useless, printableLine(fmt.Sprintf("%s (%v)", key, err)))
}

// publicKey offers the next key. The server is asked first whether it takes the
// key, and only then is the private half needed (RFC 4252, 7).
func (a *authenticator) publicKey() ssh.AuthMethod {
	if !a.loaded {
		a.loaded = true
		a.loadIdentities()
	}
	for _, id := range a.identities {
		if id.offered || a.refused(id) {
			continue
		}
		id.offered = true
		signer, err := a.signer(id)
		if err != nil {
			a.notUsed(id.label, err)
			if a.aborted != nil {
				return nil
			}
			continue
		}
		a.last = id
		a.tried = append(a.tried, "key "+printableLine(id.label))
		a.log.Debug("offering key", "key", id.label, "fingerprint", ssh.FingerprintSHA256(signer.PublicKey()))
		return ssh.PublicKeys(signer)
	}
	return nil
}

// refused says that the server has refused this very key before, from another
// source: it would only cost one of its MaxAuthTries.
func (a *authenticator) refused(id *identity) bool {
	return id.public != nil && slices.ContainsFunc(a.identities, func(other *identity) bool {
		return other != id && other.offered && !other.asked && other.public != nil && sameKey(other.public, id.public)
	})
}
