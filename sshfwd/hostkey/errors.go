package hostkey

import (
	"errors"
	"fmt"
	"strings"

	"gpg-bridge/internal/usertext"
)

// Reason is why a host key was refused.
type Reason int

// The reasons. As in ssh, a key is also Changed if only keys of other types are known.
const (
	Unknown Reason = iota
	Changed
	Revoked
	Weak
)

// errNoUserFile says why an unknown key is refused, whatever StrictHostKeyChecking is.
var errNoUserFile = errors.New("UserKnownHostsFile is none")

// An Error says that the server's key was refused. By then nothing has been sent to it
// that is meant for the right host only.
type Error struct {
	Reason      Reason
	Host        string // as it stands in known_hosts: host, [host]:port or the HostKeyAlias
	KeyType     string // "ED25519"
	Fingerprint string // "SHA256:…"
	File        string // the line that decided, or where the key would be added
	Line        int    // 0 if no line decided
	Err         error  // details, may be nil
}

func (e *Error) Error() string {
	text := fmt.Sprintf(e.problem(), e.KeyType, usertext.Line(e.Host))
	if e.Line > 0 {
		text += fmt.Sprintf(" (%s:%d)", e.File, e.Line)
	}
	text += ", it showed " + e.Fingerprint
	if e.Err != nil {
		text += ": " + usertext.Quoted(strings.ReplaceAll(e.Err.Error(), "\n", "; "))
	}
	return text
}

func (e *Error) problem() string {
	switch e.Reason {
	case Changed:
		return "the %s host key of %s HAS CHANGED, another one is known"
	case Revoked:
		return "the %s host key of %s is revoked"
	case Weak:
		return "the %s host key of %s is too weak"
	}
	return "the %s host key of %s is not known"
}

func (e *Error) Unwrap() error { return e.Err }

// Hopeless is true: see link.Hopeless.
func (e *Error) Hopeless() bool { return true }

// Hint says what to do.
func (e *Error) Hint() string {
	switch {
	case e.Reason == Changed:
		return "someone may be listening in; only if the host was really given a new key: ssh-keygen " +
			e.keygenFile() + "-R " + usertext.ShellWord(e.Host)
	case e.Reason == Revoked:
		return "a stolen key may be in use: ask the host's administrator, and do not connect"
	case e.Reason == Weak:
		return "the host needs another key, such as an ed25519 one, or RSA with more bits"
	case errors.Is(e.Err, errNoUserFile):
		return "name a file in UserKnownHostsFile (/dev/null keeps nothing), or add the key to a GlobalKnownHostsFile"
	case errors.Is(e.Err, usertext.ErrNoPrompt):
		return "connect once without BatchMode and compare the fingerprint with the host's"
	}
	return "compare the fingerprint with the host's, then connect with StrictHostKeyChecking=ask and say yes"
}

func (e *Error) keygenFile() string {
	if e.File == "" {
		return ""
	}
	return "-f " + usertext.ShellWord(e.File) + " "
}
