package sshfwd

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"golang.org/x/crypto/ssh"
)

// errNoPassphrase: the user gave an empty one, to go on with the next key.
var errNoPassphrase = errors.New("no passphrase given")

// identity is a key that may be offered.
type identity struct {
	label  string        // a file's path or the agent's comment
	public ssh.PublicKey // may be a certificate; nil while only the passphrase can tell
	agent  ssh.AlgorithmSigner
	file   *keyFile // nil if only the agent has it

	offered  bool
	accepted bool // it gave a partial success
}

// loadIdentities lists the keys in the order of pubkey_prepare in OpenSSH's
// sshconnect2.c: certificates named by CertificateFile, agent keys that are also
// named by IdentityFile, the agent's other keys unless IdentitiesOnly, then the
// other files.
func (a *authenticator) loadIdentities() {
	var files []*identity
	for _, path := range a.config.IdentityFiles {
		files = append(files, a.loadIdentityFile(path)...)
	}
	agentKeys := a.agentIdentities()
	preferred := a.certificates(files, agentKeys)
	var others []*identity
	for _, key := range agentKeys {
		i := slices.IndexFunc(files, func(f *identity) bool { return f.public != nil && sameKey(f.public, key.public) })
		switch {
		case i >= 0:
			files[i].agent = key.agent
			preferred = append(preferred, files[i])
			files = slices.Delete(files, i, i+1)
		case !a.config.IdentitiesOnly:
			others = append(others, key)
		}
	}
	a.identities = slices.Concat(preferred, others, files)
}

// loadIdentityFile gives the key of an IdentityFile, and behind it the
// certificate that lies beside it.
func (a *authenticator) loadIdentityFile(path string) []*identity {
	f, err := loadKeyFile(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || !a.config.IdentitiesAreDefaults {
			a.log.Warn("identity file not used", "file", path, "err", err)
		}
		return nil
	}
	ids := []*identity{{label: path, public: f.public, file: f}}
	certPath := path + "-cert.pub"
	if cert := readCertificate(certPath); cert != nil && f.public != nil && sameKey(cert.Key, f.public) {
		ids = append(ids, &identity{label: certPath, public: cert, file: f})
	}
	return ids
}

// certificates are those of CertificateFile whose key is at hand.
func (a *authenticator) certificates(files, agentKeys []*identity) []*identity {
	var certs []*identity
	for _, path := range a.config.CertificateFiles {
		cert := readCertificate(path)
		if cert == nil {
			a.log.Warn("no user certificate", "file", path)
			continue
		}
		id := &identity{label: path, public: cert}
		for _, key := range slices.Concat(files, agentKeys) {
			if key.public != nil && sameKey(key.public, cert.Key) {
				id.file, id.agent = cmpOr(id.file, key.file), key.agent
			}
		}
		if id.file != nil || id.agent != nil {
			certs = append(certs, id)
		}
	}
	return certs
}

func cmpOr(a, b *keyFile) *keyFile {
	if a != nil {
		return a
	}
	return b
}

// signer makes the identity ready to be offered, or says why it cannot be.
func (a *authenticator) signer(id *identity) (ssh.Signer, error) {
	if id.agent == nil && id.file.unusable != nil {
		return nil, id.file.unusable
	}
	if id.public == nil {
		if err := a.unlock(id); err != nil {
			return nil, err
		}
		id.public = id.file.public
	}
	algorithms := a.signatureAlgorithms(id.public.Type())
	if len(algorithms) == 0 {
		return nil, fmt.Errorf("PubkeyAcceptedAlgorithms does not allow %s", id.public.Type())
	}
	if id.agent == nil && id.file.private == nil && a.prompter == nil {
		a.unasked = true
		return nil, fmt.Errorf("it needs a passphrase: %w", ErrNoPrompt)
	}
	return &identitySigner{auth: a, id: id, algorithms: algorithms}, nil
}

// signatureAlgorithms are those for a type of key that the user allows, best
// first. RSA has several (RFC 8332), of which x/crypto prefers the first.
func (a *authenticator) signatureAlgorithms(keyType string) []string {
	candidates := []string{keyType}
	switch keyType {
	case ssh.KeyAlgoRSA:
		candidates = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	case ssh.CertAlgoRSAv01:
		candidates = []string{ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01, ssh.CertAlgoRSAv01}
	}
	allowed := a.config.PubkeyAcceptedAlgorithms
	if allowed == nil {
		allowed = splitCommas(fallbackDefaults().get("pubkeyacceptedalgorithms"))
	}
	var algorithms []string
	for _, c := range candidates {
		if slices.Contains(allowed, c) {
			algorithms = append(algorithms, plainAlgorithm(c))
		}
	}
	return algorithms
}

// unlock decrypts the identity's file, asking for its passphrase as often as
// NumberOfPasswordPrompts allows. An empty answer gives the key up.
func (a *authenticator) unlock(id *identity) error {
	if id.file.private != nil {
		return nil
	}
	if a.prompter == nil {
		a.unasked = true
		return fmt.Errorf("it needs a passphrase: %w", ErrNoPrompt)
	}
	prompt := fmt.Sprintf("Enter passphrase for key '%s': ", id.file.path)
	for range a.config.NumberOfPasswordPrompts {
		passphrase, err := a.askSecret(printableLine(prompt))
		if err != nil {
			return err
		}
		if len(passphrase) == 0 {
			return errNoPassphrase
		}
		err = id.file.unlock(passphrase)
		wipe(passphrase)
		if !errors.Is(err, x509.IncorrectPasswordError) {
			return err
		}
		prompt = fmt.Sprintf("Bad passphrase, try again for '%s': ", id.file.path)
	}
	return errors.New("bad passphrase")
}

// identitySigner signs with an identity when the server has accepted its public
// half. It is an ssh.MultiAlgorithmSigner.
type identitySigner struct {
	auth       *authenticator
	id         *identity
	algorithms []string
}

func (s *identitySigner) PublicKey() ssh.PublicKey { return s.id.public }

func (s *identitySigner) Algorithms() []string { return s.algorithms }

func (s *identitySigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, s.algorithms[0])
}

func (s *identitySigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (sig *ssh.Signature, err error) {
	if !slices.Contains(s.algorithms, algorithm) {
		return nil, fmt.Errorf("algorithm %q is not allowed", algorithm)
	}
	signer := s.id.agent
	if signer == nil {
		if err := s.auth.unlock(s.id); err != nil {
			s.auth.log.Warn("key not used", "key", s.id.label, "err", err)
			return nil, err
		}
		signer = s.id.file.private
	}
	// An agent may wait for its user to confirm or to touch a token.
	s.auth.clock.pause(func() { sig, err = signer.SignWithAlgorithm(rand, data, algorithm) })
	if err != nil {
		s.auth.log.Warn("key cannot sign", "key", s.id.label, "err", err)
	}
	return sig, err
}
