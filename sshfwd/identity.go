package sshfwd

import (
	"cmp"
	"crypto/rsa"
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
	asked    bool // the server has taken the public half
	accepted bool // it gave a partial success
}

// loadIdentities lists the keys in the order of pubkey_prepare in OpenSSH's
// sshconnect2.c: certificates named by CertificateFile, agent keys that are also
// named by IdentityFile, the agent's other keys unless IdentitiesOnly, then the
// other files.
func (a *authenticator) loadIdentities() {
	var files, named, others []*identity
	for _, path := range a.config.IdentityFiles {
		files = append(files, a.loadIdentityFile(path)...)
	}
	for _, key := range a.agentIdentities() {
		i := slices.IndexFunc(files, func(f *identity) bool { return f.public != nil && sameKey(f.public, key.public) })
		switch {
		case i >= 0:
			files[i].agent = key.agent
			named = append(named, files[i])
			files = slices.Delete(files, i, i+1)
		case !a.config.IdentitiesOnly:
			others = append(others, key)
		}
	}
	keys := slices.Concat(named, others, files)
	a.identities = slices.Concat(a.certificates(keys), keys)
	for _, id := range keys {
		id.adoptSigner(keys)
	}
	a.recall()
}

// adoptSigner: the key of a certificate that lies beside a file may be the
// agent's.
func (id *identity) adoptSigner(keys []*identity) {
	cert, ok := id.public.(*ssh.Certificate)
	if !ok || id.agent != nil {
		return
	}
	for _, key := range keys {
		if key.agent != nil && sameKey(key.public, cert.Key) {
			id.agent = key.agent
		}
	}
}

// loadIdentityFile gives the key of an IdentityFile, and behind it, where no
// CertificateFile is set, the certificate that lies beside it
// (load_public_identity_files in OpenSSH's ssh.c).
func (a *authenticator) loadIdentityFile(path string) []*identity {
	f, err := loadKeyFile(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || !a.config.IdentitiesAreDefaults {
			a.notUsed(path, rootCause(err))
		}
		return nil
	}
	ids := []*identity{{label: path, public: f.public, file: f}}
	if len(a.config.CertificateFiles) > 0 {
		return ids
	}
	certPath := path + "-cert.pub"
	if cert := readCertificate(certPath); cert != nil && f.public != nil && sameKey(cert.Key, f.public) {
		ids = append(ids, &identity{label: certPath, public: cert, file: f})
	}
	return ids
}

// certificates are those of CertificateFile whose key is among keys. ssh also
// offers the others, only to find that it cannot sign.
func (a *authenticator) certificates(keys []*identity) []*identity {
	var certs []*identity
	for _, path := range a.config.CertificateFiles {
		cert := readCertificate(path)
		if cert == nil {
			a.log.Warn("no user certificate", "file", path)
			continue
		}
		id := &identity{label: path, public: cert}
		for _, key := range keys {
			if key.public != nil && sameKey(key.public, cert.Key) {
				id.file, id.agent = cmp.Or(id.file, key.file), key.agent
			}
		}
		if id.file != nil || id.agent != nil {
			certs = append(certs, id)
		}
	}
	return certs
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
	if bits := rsaBits(id.public); bits > 0 && bits < a.config.RequiredRSASize {
		return nil, fmt.Errorf("its %d bits are less than RequiredRSASize", bits)
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

// rsaBits is the size of an RSA key or of a certificate's, 0 for other types.
func rsaBits(key ssh.PublicKey) int {
	crypto, ok := plainKey(key).(ssh.CryptoPublicKey)
	if !ok {
		return 0
	}
	public, ok := crypto.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return 0
	}
	return public.N.BitLen()
}

// signatureAlgorithms are those for a type of key that the user allows, in the
// order of PubkeyAcceptedAlgorithms. RSA has several (RFC 8332), of which
// x/crypto takes the first that the server knows (key_sig_algorithm in
// OpenSSH's sshconnect2.c).
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
	for _, c := range allowed {
		if slices.Contains(candidates, c) {
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
	s.id.asked = true
	signer := s.id.agent
	if signer == nil {
		if err := s.auth.unlock(s.id); err != nil {
			s.auth.notUsed(s.id.label, err)
			return nil, err
		}
		signer = s.id.file.private
		s.auth.addToAgent(s.id.file)
	}
	// An agent may wait for its user to confirm or to touch a token.
	s.auth.clock.pause(func() { sig, err = signer.SignWithAlgorithm(rand, data, algorithm) })
	if err != nil {
		s.auth.notUsed(s.id.label, err)
	}
	return sig, err
}
