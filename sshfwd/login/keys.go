package login

import (
	"slices"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/hostkey"
)

// keyAttempts is the state of the method publickey (RFC 4252, 7).
type keyAttempts struct {
	loaded     bool
	identities []*identity // in the order in which they are offered
	agent      *agentConn  // nil before loaded, or if there is none
	memory     *keyMemory  // nil if nothing is to be remembered

	last  *identity // offered in the current attempt, nil if that is by another method
	first *identity // that succeeded in the first step, nil if another method did
}

// nextKey offers the next key. The server is asked first whether it accepts the key;
// the private half is needed only if it does (RFC 4252, 7).
func (l *Login) nextKey() ssh.AuthMethod {
	if !l.keys.loaded {
		l.keys.loaded = true
		l.loadIdentities()
	}
	for _, id := range l.keys.identities {
		if id.offered || l.refused(id) {
			continue
		}
		id.offered = true
		signer, err := l.signer(id)
		if err != nil {
			l.notUsed(id.label, err)
			if l.aborted != nil {
				return nil
			}
			continue
		}
		l.keys.last = id
		l.tried = append(l.tried, "key "+usertext.Line(id.label))
		l.Log.Debug("offering key", "key", id.label, "fingerprint", ssh.FingerprintSHA256(signer.PublicKey()))
		return ssh.PublicKeys(signer)
	}
	return nil
}

// refused reports whether the server has refused this very key before, when it came from
// another source: to offer it again would only use up one of its MaxAuthTries.
func (l *Login) refused(id *identity) bool {
	return id.public != nil && slices.ContainsFunc(l.keys.identities, func(other *identity) bool {
		return other != id && other.offered && !other.asked && other.public != nil && hostkey.Same(other.public, id.public)
	})
}
