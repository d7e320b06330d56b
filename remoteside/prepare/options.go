package prepare

import (
	"context"
	"fmt"
)

// A Key is a public key that the host is to have.
type Key struct {
	Fingerprint string // of the primary key, in upper-case hex
	OwnerTrust  int    // as in gpg --export-ownertrust, 2 to 6; 0: none is set

	// SelfSignatures are those that the key on the host is to have, each as
	// "PART-CLASS-CREATED"; see agentside.Key. If there are none, any key with this
	// fingerprint will do.
	SelfSignatures []string
}

// Options says what to do on the host.
type Options struct {
	// Takeover takes the socket's path away from the live forward of another
	// connection, which is otherwise a *HeldError.
	Takeover bool

	// Evict stops the host's own agent if it runs, which is otherwise an
	// *OwnAgentError.
	Evict bool

	// Token is the name of a file that the caller has put beside the socket of its
	// own agent, and that exists nowhere else: letters, digits, ".", "_" and "-". If
	// that file is beside the socket on the host, it is the same directory: a
	// *SelfError. If Token is empty, this is not checked.
	Token string

	// Begun, if not nil, is called at most once, before Prepare returns, when the
	// account's shell has run its start-up files and begins with the preparation. It
	// must not block.
	Begun func()

	// MOTD, if not nil, is called at most once, before Prepare returns, with the
	// lines of the host's message of the day, which are not to be trusted, if sshd
	// will not show them to the user because the preparation came first.
	MOTD func(lines []string)

	// Home is the GNUPGHOME to prepare: the absolute path of a directory that the
	// account owns. If it is empty, it is the one that the account's commands have.
	// See LoginHome.
	Home string

	// Wanted are the public keys that the host is to have.
	Wanted []Key

	// Export returns the public keys with these fingerprints, in ASCII armor, for gpg
	// --import. It is called at most once, from another goroutine, with those of the
	// Wanted keys that the host lacks or has in an older state.
	Export func(ctx context.Context, fingerprints []string) ([]byte, error)

	inspect bool // see Inspect
}

func (o *Options) fingerprints() ([]string, error) {
	if o.Token != "" && !tokenForm.MatchString(o.Token) {
		return nil, fmt.Errorf("not a token: %.80q", o.Token)
	}
	if o.Home != "" && !IsHome(o.Home) {
		return nil, fmt.Errorf("not a home: %.80q", o.Home)
	}
	var fingerprints []string
	for _, key := range o.Wanted {
		if !fingerprintForm.MatchString(key.Fingerprint) {
			return nil, fmt.Errorf("not a fingerprint: %.80q", key.Fingerprint)
		}
		if key.OwnerTrust < 0 || key.OwnerTrust > 255 {
			return nil, fmt.Errorf("not an ownertrust of %s: %d", key.Fingerprint, key.OwnerTrust)
		}
		for _, signature := range key.SelfSignatures {
			if !signatureForm.MatchString(signature) {
				return nil, fmt.Errorf("not a signature of %s: %.80q", key.Fingerprint, signature)
			}
		}
		fingerprints = append(fingerprints, key.Fingerprint)
	}
	return fingerprints, nil
}
