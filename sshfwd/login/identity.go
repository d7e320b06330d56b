package login

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// errNoPassphrase says that the user gave an empty one, to go on with the next key.
var errNoPassphrase = errors.New("no passphrase given")

// identity is a key that may be offered.
type identity struct {
	label  string        // a file's path or the agent's comment
	public ssh.PublicKey // may be a certificate; nil while only the passphrase can tell
	agent  ssh.AlgorithmSigner
	file   *keyFile // nil if only the agent has it

	offered  bool
	asked    bool // the server accepted the public half, and asked for a signature
	accepted bool // it was a partial success
}

// loadIdentities lists the keys in the order of pubkey_prepare in OpenSSH's
// sshconnect2.c: certificates named by CertificateFile, agent keys that are also
// named by IdentityFile, the agent's other keys unless IdentitiesOnly, then the
// other files.
func (l *Login) loadIdentities() {
	var files, named, others []*identity
	for _, path := range l.Config.IdentityFiles {
		files = append(files, l.loadIdentityFile(path)...)
	}
	for _, key := range l.agentIdentities() {
		i := slices.IndexFunc(files, func(f *identity) bool { return f.public != nil && hostkey.Same(f.public, key.public) })
		switch {
		case i >= 0:
			files[i].agent = key.agent
			named = append(named, files[i])
			files = slices.Delete(files, i, i+1)
		case !l.Config.IdentitiesOnly:
			others = append(others, key)
		}
	}
	keys := slices.Concat(l.certificates(), named, others, files)
	for _, id := range keys {
		id.findKey(keys)
	}
	// ssh also offers the certificates that it cannot sign for.
	l.keys.identities = slices.DeleteFunc(keys, func(id *identity) bool { return id.agent == nil && id.file == nil })
	l.recall()
}

// findKey finds the private key of a certificate: whichever of the keys is the one in
// it, or else one whose public half is not known but whose file's name fits
// (sign_and_send_pubkey in OpenSSH's sshconnect2.c).
func (id *identity) findKey(keys []*identity) {
	cert, ok := id.public.(*ssh.Certificate)
	if !ok || id.agent != nil {
		return
	}
	for _, key := range keys {
		if key.public != nil && hostkey.Same(key.public, cert.Key) {
			id.agent, id.file = key.agent, key.file
			return
		}
	}
	for _, key := range keys {
		if key.public == nil && key.label == strings.TrimSuffix(id.label, "-cert.pub") {
			id.file = key.file
			return
		}
	}
}

// loadIdentityFile returns the key of an IdentityFile, followed by the certificate beside
// it if no CertificateFile is set (load_public_identity_files in OpenSSH's ssh.c).
func (l *Login) loadIdentityFile(path string) []*identity {
	f, err := loadKeyFile(l.ctx, path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || !l.Config.IdentitiesAreDefaults {
			l.notUsed(path, usertext.RootCause(err))
		}
		return nil
	}
	if cert, ok := f.public.(*ssh.Certificate); ok && cert.CertType != ssh.UserCert {
		l.Log.Warn("no user certificate", "file", path)
		return nil
	}
	ids := []*identity{{label: path, public: f.public, file: f}}
	if len(l.Config.CertificateFiles) > 0 {
		return ids
	}
	if cert := readCertificate(l.ctx, path+"-cert"); cert != nil {
		ids = append(ids, &identity{label: path + "-cert.pub", public: cert})
	}
	return ids
}

// certificates are those of CertificateFile.
func (l *Login) certificates() []*identity {
	var certs []*identity
	for _, path := range l.Config.CertificateFiles {
		cert := readCertificate(l.ctx, path)
		if cert == nil {
			l.Log.Warn("no user certificate", "file", path)
			continue
		}
		certs = append(certs, &identity{label: path, public: cert})
	}
	return certs
}

// signer makes the identity ready to be offered, or returns why it cannot be.
func (l *Login) signer(id *identity) (ssh.Signer, error) {
	if id.agent == nil && id.file.unusable != nil {
		return nil, id.file.unusable
	}
	if id.public == nil {
		if err := l.unlock(id); err != nil {
			return nil, err
		}
		id.public = id.file.public
	}
	if bits, ok := hostkey.RSASize(id.public); ok && bits < l.Config.RequiredRSASize {
		return nil, fmt.Errorf("its %d bits are less than RequiredRSASize", bits)
	}
	algorithms := l.signatureAlgorithms(id.public.Type())
	if len(algorithms) == 0 {
		return nil, fmt.Errorf("PubkeyAcceptedAlgorithms does not allow %s", id.public.Type())
	}
	if id.agent == nil && id.file.private == nil && l.Asker == nil {
		return nil, l.needsPassphrase()
	}
	return &identitySigner{login: l, id: id, algorithms: algorithms}, nil
}

// signatureAlgorithms are the algorithms that the user allows for a type of key, in the
// order of PubkeyAcceptedAlgorithms. RSA has several (RFC 8332); x/crypto uses the
// first one that the server knows (key_sig_algorithm in OpenSSH's sshconnect2.c).
func (l *Login) signatureAlgorithms(keyType string) []string {
	candidates := []string{keyType}
	switch keyType {
	case ssh.KeyAlgoRSA:
		candidates = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	case ssh.CertAlgoRSAv01:
		candidates = []string{ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01, ssh.CertAlgoRSAv01}
	}
	allowed := l.Config.PubkeyAcceptedAlgorithms
	if allowed == nil {
		allowed = config.DefaultAlgorithms("pubkeyacceptedalgorithms")
	}
	var algorithms []string
	for _, c := range allowed {
		if slices.Contains(candidates, c) {
			algorithms = append(algorithms, config.PlainAlgorithm(c))
		}
	}
	return algorithms
}

// needsPassphrase notes, and returns as an error, that nobody can be asked for a passphrase.
func (l *Login) needsPassphrase() error {
	l.unasked = true
	return fmt.Errorf("it needs a passphrase: %w", usertext.ErrNoPrompt)
}

// unlock decrypts the identity's file. It asks for the passphrase up to
// NumberOfPasswordPrompts times; an empty answer means not to use the key.
func (l *Login) unlock(id *identity) error {
	if id.file.private != nil {
		return nil
	}
	if l.Asker == nil {
		return l.needsPassphrase()
	}
	prompt := fmt.Sprintf("Enter passphrase for key '%s': ", id.file.path)
	for range l.Config.NumberOfPasswordPrompts {
		passphrase, err := l.askSecret(usertext.Line(prompt))
		if err != nil {
			return err
		}
		if len(passphrase) == 0 {
			return errNoPassphrase
		}
		err = id.file.unlock(passphrase)
		clear(passphrase)
		if !errors.Is(err, x509.IncorrectPasswordError) {
			return err
		}
	}
	return errors.New("bad passphrase")
}

// identitySigner signs with an identity when the server has accepted its public
// half. It is an ssh.MultiAlgorithmSigner.
type identitySigner struct {
	login      *Login
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
		if err := s.login.unlock(s.id); err != nil {
			s.login.notUsed(s.id.label, err)
			return nil, err
		}
		signer = s.id.file.private
		s.login.addToAgent(s.id.file)
	}
	// An agent may wait for its user to confirm, or to touch a token.
	s.login.Pause(func() { sig, err = signer.SignWithAlgorithm(rand, data, algorithm) })
	if err != nil {
		s.login.notUsed(s.id.label, err)
		s.login.noteRefusal(err)
	}
	return sig, err
}
