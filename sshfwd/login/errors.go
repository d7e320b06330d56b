package login

import (
	"errors"
	"fmt"
	"strings"

	"gpg-bridge/internal/usertext"
)

// ErrPasswordExpired says that the server accepted the password, but wants a new one
// before it lets the user in (RFC 4252, 8).
var ErrPasswordExpired = errors.New("the server wants the password to be changed first")

// manyKeys is sshd's default for MaxAuthTries, less the first try, which is the method
// "none".
const manyKeys = 5

// An AuthError says that no way to log in has succeeded. If Err is an *AgentRefusedError,
// one would have, had the ssh-agent signed.
type AuthError struct {
	User    string
	Host    string
	Methods []string // what the server would still have accepted (RFC 4252)
	Tried   []string // what was tried, for the user: "key /home/me/.ssh/id_rsa"
	Err     error    // may be nil
	// Unusable are the keys that could not be tried, or could not sign, each with
	// the reason. Keys whose passphrase nobody could be asked for are not among them.
	Unusable []string
}

func (e *AuthError) Error() string {
	var refused *AgentRefusedError
	if errors.As(e.Err, &refused) {
		return fmt.Sprintf("%s@%s: not logged in: %v", e.User, e.Host, refused)
	}
	text := fmt.Sprintf("%s@%s: permission denied (%s)", e.User, e.Host, usertext.Quoted(strings.Join(e.Methods, ",")))
	if e.Err != nil {
		text += ": " + usertext.Quoted(e.Err.Error())
	}
	return text
}

// SSHSays is usertext.Spoken (ssh_userauth2 in sshconnect2.c).
func (e *AuthError) SSHSays() (words []usertext.Message, complete bool) {
	text := fmt.Sprintf("%s@%s: Permission denied (%s).", usertext.Line(e.User), usertext.Line(e.Host), usertext.Quoted(strings.Join(e.Methods, ",")))
	return []usertext.Message{{Level: usertext.Fatal, Text: text}}, e.Err == nil
}

func (e *AuthError) Unwrap() error { return e.Err }

// Hint says what was tried and what to do.
func (e *AuthError) Hint() string {
	if errors.Is(e.Err, usertext.ErrNoPrompt) {
		advice := "log in once without BatchMode, or add the key to your ssh-agent (ssh-add)"
		if len(e.Unusable) > 0 {
			return e.unusable() + "; " + advice
		}
		return advice
	}
	if hint := usertext.Hint(e.Err); hint != "" {
		return hint
	}
	if errors.Is(e.Err, ErrPasswordExpired) {
		return "log in with `ssh` once, which asks for the new password"
	}
	if len(e.Unusable) > 0 {
		return e.unusable()
	}
	if len(e.Tried) == 0 {
		return "no key or password could be offered: check IdentityFile, and `ssh-add -l`"
	}
	if len(e.Tried) >= manyKeys {
		return fmt.Sprintf("the server may not have let %d keys be tried; name the right one with -i, and set IdentitiesOnly for this host", len(e.Tried))
	}
	return "tried " + strings.Join(e.Tried, ", ") + "; name the right key with -i, or add it to the host's authorized_keys"
}

func (e *AuthError) unusable() string { return "could not use " + strings.Join(e.Unusable, ", ") }
