package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/wire"
)

// The methods we know (RFC 4252, RFC 4256).
const (
	methodPublicKey   = "publickey"
	methodKeyboard    = "keyboard-interactive"
	methodPassword    = "password"
	maxQuestions      = 32 // in one round of keyboard-interactive
	maxKeyboardRounds = 32 // in one attempt
)

// Options are what a log-in needs.
type Options struct {
	Config *config.Config
	Asker  usertext.Asker // nil if nothing may be asked
	Pause  func(func())   // runs a function; its time does not count for LoginTimeout
	Tap    *wire.Tap      // of the connection
	Log    *slog.Logger

	StateDir   string                                // sshfwd.DialOptions.StateDir
	TokenAsked func(Token) (answered func(TokenUse)) // sshfwd.DialOptions.TokenAsked
}

// Login chooses, one attempt after another, how to log in, in ssh's order
// (sshconnect2.c): keys, then keyboard-interactive, then password, or as
// PreferredAuthentications says. One key is one attempt, so that a key whose
// use fails (refused, not touched) does not spoil the others' chances. It is used
// by one goroutine, the one that does the handshake.
type Login struct {
	Options
	ctx context.Context

	started   bool     // the key exchange is over
	sessionID []byte   // of this connection
	methods   []string // what the server accepts now
	partial   int      // partial successes so far

	keys     keyAttempts
	keyboard keyboardAttempts
	password passwordAttempts

	tried    []string           // for the user
	unusable []string           // keys that could not be used, and why; for the user
	unasked  bool               // something was not asked, because of BatchMode
	refusal  *AgentRefusedError // of the first key that the host would have accepted
	aborted  error              // a prompt failed: no further attempt
	failure  error              // what Next returned at the end
}

// New begins a log-in; Close must be called. ctx bounds its questions and its connection
// to the agent.
func New(ctx context.Context, o Options) *Login {
	if o.Config.BatchMode {
		o.Asker = nil
	}
	return &Login{Options: o, ctx: ctx}
}

// Close ends the connection to the agent.
func (l *Login) Close() { l.keys.agent.close() }

// Next is an ssh.ClientAuthCallback. It is called after "none" has failed, and
// after each further failure or partial success. When it gives up, the error is an
// *AuthError.
func (l *Login) Next(server *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.started, l.sessionID = true, server.Metadata.SessionID()
	l.methods = server.AllowedMethods
	if l.Tap.Lost() != nil {
		return nil, nil // x/crypto knows the error
	}
	if n := len(server.PartialSuccessMethods); n > l.partial {
		l.partial = n
		l.succeededPartly()
	}
	l.keys.last = nil
	for _, method := range l.order() {
		if l.aborted != nil {
			break
		}
		if !slices.Contains(l.methods, method) {
			continue
		}
		if m := l.attempt(method); m != nil {
			return m, nil
		}
	}
	l.failure = l.Denied(l.aborted)
	return nil, l.failure
}

// succeededPartly notes that the server wants another method, too. All keys may be
// offered again but the one that succeeded, first those that have not been yet
// (pubkey_reset and userauth_pubkey in sshconnect2.c).
func (l *Login) succeededPartly() {
	l.Log.Debug("authenticated partly")
	l.password.current = nil
	if l.partial == 1 {
		l.keys.first = l.keys.last
	}
	if i := slices.Index(l.keys.identities, l.keys.last); i >= 0 {
		l.keys.last.accepted = true
		l.keys.identities = slices.Concat(l.keys.identities[i+1:], l.keys.identities[:i+1])
	}
	for _, id := range l.keys.identities {
		id.offered, id.asked = id.accepted, false
	}
}

// Succeeded notes that the server has let us in. It is called once, before Keys.
func (l *Login) Succeeded() {
	if l.partial == 0 {
		l.keys.first = l.keys.last
	}
	if l.keys.memory != nil && l.keys.first != nil {
		l.keys.memory.note(l.keys.first)
	}
}

// HasStarted reports whether the key exchange is over.
func (l *Login) HasStarted() bool { return l.started }

// Failure is the *AuthError with which the log-in was given up, nil if it was not.
func (l *Login) Failure() error { return l.failure }

// Keys are the keys that the server accepted in the first and in the last step of the
// log-in, if those were done with a key.
func (l *Login) Keys() (keys []ssh.PublicKey) {
	for _, id := range []*identity{l.keys.first, l.keys.last} {
		if id != nil && id.public != nil {
			keys = append(keys, id.public)
		}
	}
	return keys
}

// order is the order of the methods.
func (l *Login) order() []string {
	known := []string{methodPublicKey, methodKeyboard, methodPassword}
	if len(l.Config.PreferredAuthentications) == 0 {
		return known
	}
	return l.Config.PreferredAuthentications
}

// attempt returns the next attempt by a method, nil if it has none left.
func (l *Login) attempt(method string) ssh.AuthMethod {
	switch {
	case method == methodPublicKey && l.Config.PubkeyAuthentication:
		return l.nextKey()
	case method == methodKeyboard && l.Config.KbdInteractiveAuthentication:
		return l.nextKeyboard()
	case method == methodPassword && l.Config.PasswordAuthentication:
		return l.nextPassword()
	}
	return nil
}

// Denied is the *AuthError for a log-in that failed; cause may be nil. If the ssh-agent
// refused to sign, that is the cause, and not what the host said then, nor that nobody
// could be asked.
func (l *Login) Denied(cause error) error {
	switch {
	case l.aborted != nil:
	case l.refusal != nil:
		cause = l.refusal
	case cause == nil && l.unasked:
		cause = usertext.ErrNoPrompt
	}
	return &AuthError{
		User: l.Config.User, Host: l.Config.Hostname, Methods: l.methods, Tried: l.tried, Unusable: l.unusable, Err: cause,
	}
}

// notUsed notes why a key could not be used, in case the log-in fails.
func (l *Login) notUsed(key string, err error) {
	l.Log.Warn("key not used", "key", key, "err", err)
	if errors.Is(err, usertext.ErrNoPrompt) { // the log-in's error will say so
		return
	}
	l.unusable = append(l.unusable, usertext.Line(fmt.Sprintf("%s (%v)", key, err)))
}

// noteRefusal notes that the ssh-agent refused to sign, if that is the error.
func (l *Login) noteRefusal(err error) {
	var refused *AgentRefusedError
	if l.refusal == nil && errors.As(err, &refused) {
		l.refusal = refused
	}
}
