package sshfwd

import (
	"context"
	"errors"
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

	started    bool // the key exchange is over
	identities []*identity
	loaded     bool
	agent      *agentConn
	last       *identity // offered in the attempt under way
	partial    int       // partial successes so far

	passwords int // attempts
	keyboards int
	asked     bool // the server has asked something by keyboard-interactive

	methods []string // what the server accepts now
	tried   []string // for the user
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
	a.started = true
	a.methods = server.AllowedMethods
	if n := len(server.PartialSuccessMethods); n > a.partial {
		a.partial = n
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
	for _, id := range a.identities {
		id.offered = id.accepted
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
		User: a.config.User, Host: a.config.Hostname, Methods: a.methods, Tried: a.tried, Err: cause,
	}
}

// publicKey offers the next key. The server is asked first whether it takes the
// key, and only then is the private half needed (RFC 4252, 7).
func (a *authenticator) publicKey() ssh.AuthMethod {
	if !a.loaded {
		a.loaded = true
		a.loadIdentities()
	}
	for _, id := range a.identities {
		if id.offered {
			continue
		}
		id.offered = true
		signer, err := a.signer(id)
		if err != nil {
			a.log.Warn("key not offered", "key", id.label, "err", err)
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

// mayAsk says whether another attempt by a method that asks is allowed
// (NumberOfPasswordPrompts).
func (a *authenticator) mayAsk(attempts int) bool {
	if a.prompter == nil {
		a.unasked = true
		return false
	}
	return attempts < a.config.NumberOfPasswordPrompts
}

func (a *authenticator) password() ssh.AuthMethod {
	if !a.mayAsk(a.passwords) {
		return nil
	}
	a.passwords++
	if a.passwords > 1 {
		a.prompter.Notice("Permission denied, please try again.")
	} else {
		a.tried = append(a.tried, methodPassword)
	}
	return ssh.PasswordCallback(func() (string, error) {
		secret, err := a.askSecret(printableLine(fmt.Sprintf("%s@%s's password: ", a.config.User, a.config.Hostname)))
		defer wipe(secret)
		return string(secret), err
	})
}

// askSecret ends the log-in if the user does not answer.
func (a *authenticator) askSecret(prompt string) ([]byte, error) {
	secret, err := a.prompter.AskSecret(a.ctx, prompt)
	if err != nil {
		a.aborted = err
	}
	return secret, err
}

func (a *authenticator) keyboard() ssh.AuthMethod {
	if a.keyboards > 0 && !a.asked { // the server has nothing to ask
		return nil
	}
	if !a.mayAsk(a.keyboards) {
		return nil
	}
	a.keyboards++
	if a.keyboards == 1 {
		a.tried = append(a.tried, methodKeyboard)
	}
	rounds := 0
	return ssh.KeyboardInteractive(func(name, instruction string, questions []string, echos []bool) ([]string, error) {
		a.asked = true
		if rounds++; rounds > maxKeyboardRounds || len(questions) > maxQuestions {
			return nil, errors.New("the server asks too much")
		}
		return a.answer(name, instruction, questions, echos)
	})
}

// answer shows what the server says and asks its questions, each marked with
// who asks, as ssh does.
func (a *authenticator) answer(name, instruction string, questions []string, echos []bool) ([]string, error) {
	for _, text := range []string{name, instruction} {
		if text != "" {
			a.prompter.Notice(Printable(text))
		}
	}
	answers := make([]string, len(questions))
	for i, question := range questions {
		prompt := Printable(fmt.Sprintf("(%s@%s) %s", a.config.User, a.config.Hostname, question))
		if echos[i] {
			answer, err := a.prompter.Ask(a.ctx, prompt)
			if err != nil {
				a.aborted = err
				return nil, err
			}
			answers[i] = answer
			continue
		}
		secret, err := a.askSecret(prompt)
		if err != nil {
			return nil, err
		}
		answers[i] = string(secret)
		wipe(secret)
	}
	return answers, nil
}
