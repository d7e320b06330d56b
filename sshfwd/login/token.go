package login

import (
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/hostkey"
)

// A Token is a key of the ssh-agent that is on a piece of hardware, which may want to be
// touched before it signs, and may wait for that without limit.
type Token struct {
	Key         string // the agent's comment, for the user; not to be shown raw
	Fingerprint string
}

// A TokenUse is the outcome of asking a token for a signature.
type TokenUse struct {
	Touched bool  // it was touched, or a PIN was given: somebody had to be there
	Err     error // why there is no signature, or nil
}

// userWait is the time from which on a signature has most likely waited for the user: a
// smart card takes a tenth of a second by itself, and the slowest half a second.
const userWait = 500 * time.Millisecond

// userPresent is the flag in a FIDO key's signature for having been touched (OpenSSH's
// PROTOCOL.u2f).
const userPresent = 1

// isToken reports whether a key is on a token: a FIDO key shows it by its type, a smart
// card's by the comment that gpg-agent gives it (gnupg agent/command-ssh.c).
func isToken(public ssh.PublicKey, comment string) bool {
	switch hostkey.Plain(public).Type() {
	case ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return true
	}
	return strings.HasPrefix(comment, "cardno:")
}

// wasTouched reports whether a token was touched for a signature that took so long. A FIDO
// signature has a flag for it; for others the time decides.
func wasTouched(signature *ssh.Signature, took time.Duration) bool {
	switch signature.Format {
	case ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return len(signature.Rest) > 0 && signature.Rest[0]&userPresent != 0
	}
	return took >= userWait
}

// An AgentRefusedError says that the ssh-agent did not sign with a key that the host would
// have accepted. The host is not to blame.
type AgentRefusedError struct {
	Token        // the key
	IsToken bool // whether it is on a token
	Err     error
}

func (e *AgentRefusedError) Error() string {
	return fmt.Sprintf("the ssh-agent did not sign with key %s %s", usertext.Quoted(e.Key), e.Fingerprint)
}

func (e *AgentRefusedError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *AgentRefusedError) Hint() string {
	if e.IsToken {
		return "connect again, and touch the token when it blinks"
	}
	return "see whether the agent is locked (ssh-add -X) or asks for a confirmation; ssh-add -T and the key's public file tries it"
}

// Sign is SignWithAlgorithm with the key's own algorithm.
func (s *agentSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, "")
}

// SignWithAlgorithm has the agent sign, however long that takes. Errors are
// *AgentRefusedError.
func (s *agentSigner) SignWithAlgorithm(_ io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	key := Token{Key: s.comment, Fingerprint: hostkey.Fingerprint(s.public)}
	answered := func(TokenUse) {}
	token := isToken(s.public, s.comment)
	if token && s.tokenAsked != nil {
		answered = s.tokenAsked(key)
	}
	begun := time.Now()
	signature, err := s.ask(data, algorithm)
	if err != nil {
		answered(TokenUse{Err: err})
		return nil, &AgentRefusedError{Token: key, IsToken: token, Err: err}
	}
	answered(TokenUse{Touched: token && wasTouched(signature, time.Since(begun))})
	return signature, nil
}
