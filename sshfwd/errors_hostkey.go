package sshfwd

import (
	"errors"
	"fmt"
	"strings"
)

// HostKeyReason is why a host key was refused.
type HostKeyReason int

// The reasons. KeyChanged is also a key of a type that is not known where
// another type is, as for ssh.
const (
	KeyUnknown HostKeyReason = iota
	KeyChanged
	KeyRevoked
	KeyWeak
)

// HostKeyError: the server's key was refused. Nothing was sent to it that
// depends on who it is.
type HostKeyError struct {
	Reason      HostKeyReason
	Host        string // as it stands in known_hosts: host, [host]:port or the HostKeyAlias
	KeyType     string // "ED25519"
	Fingerprint string // "SHA256:…"
	File        string // the line that decided, or where the key would be added
	Line        int    // 0 if no line decided
	Err         error  // more about it, may be nil
}

func (e *HostKeyError) Error() string {
	text := fmt.Sprintf(e.problem(), e.KeyType, printableLine(e.Host))
	if e.Line > 0 {
		text += fmt.Sprintf(" (%s:%d)", e.File, e.Line)
	}
	text += ", it showed " + e.Fingerprint
	if e.Err != nil {
		text += ": " + quoted(strings.ReplaceAll(e.Err.Error(), "\n", "; "))
	}
	return text
}

func (e *HostKeyError) problem() string {
	switch e.Reason {
	case KeyChanged:
		return "the %s host key of %s HAS CHANGED, another one is known"
	case KeyRevoked:
		return "the %s host key of %s is revoked"
	case KeyWeak:
		return "the %s host key of %s is too weak"
	}
	return "the %s host key of %s is not known"
}

func (e *HostKeyError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *HostKeyError) Hint() string {
	switch {
	case e.Reason == KeyChanged:
		return "someone may be listening in; only if the host was really given a new key: ssh-keygen " +
			e.keygenFile() + "-R " + shellWord(e.Host)
	case e.Reason == KeyRevoked:
		return "a stolen key may be in use: ask the host's administrator, and do not connect"
	case e.Reason == KeyWeak:
		return "have the host use an ed25519 key, or lower RequiredRSASize for it"
	case errors.Is(e.Err, ErrNoPrompt):
		return "connect once without BatchMode and compare the fingerprint with the host's"
	}
	return "compare the fingerprint with the host's, then connect with StrictHostKeyChecking=ask and say yes"
}

func (e *HostKeyError) keygenFile() string {
	if e.File == "" {
		return ""
	}
	return "-f " + shellWord(e.File) + " "
}

// shellWord quotes for a POSIX shell: the hint is made to be pasted.
func shellWord(s string) string {
	return "'" + strings.ReplaceAll(printableLine(s), "'", `'\''`) + "'"
}
