package sshfwd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/crypto/ssh"
)

// maxKeyFile bounds what is read as a key; ssh's own bound (MAX_KEY_FILE_SIZE
// in OpenSSH's authfile.c).
const maxKeyFile = 1 << 20

// keyFile is an identity file. What is known of it grows: the public half is
// often readable where the private one is encrypted.
type keyFile struct {
	path      string
	public    ssh.PublicKey // nil if only the passphrase can tell
	comment   string        // of the public key's file, "" if unknown
	private   ssh.AlgorithmSigner
	raw       any    // what private was made of
	encrypted []byte // nil once unlocked
	unusable  error  // why there is no private key: an agent may have it
	added     bool   // AddKeysToAgent has been done
}

// loadKeyFile reads a private key, its .pub file, or a public key itself, which
// names one that the agent has. Without any the error is that of the file.
func loadKeyFile(path string) (*keyFile, error) {
	f := &keyFile{path: path}
	data, err := readPrivateFile(path)
	if err == nil {
		err = f.parse(data)
	}
	f.unusable = err
	public, comment := readPublicKey(path+".pub", path)
	if f.public == nil {
		f.public = public
	}
	f.comment = comment
	if f.unusable != nil && f.public == nil {
		return nil, f.unusable
	}
	return f, nil
}

func (f *keyFile) parse(data []byte) error {
	raw, err := ssh.ParseRawPrivateKey(data)
	if err == nil {
		clear(data)
		return f.setPrivate(raw)
	}
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		f.encrypted, f.public = data, missing.PublicKey
		return nil
	}
	return fmt.Errorf("no private key that can be used here (a security key, or one in another format, works through ssh-agent: ssh-add it): %w", err)
}

func (f *keyFile) setPrivate(raw any) error {
	signer, err := ssh.NewSignerFromKey(raw)
	if err != nil {
		return err
	}
	algorithmSigner, ok := signer.(ssh.AlgorithmSigner)
	if !ok {
		return fmt.Errorf("cannot sign with a key of type %s", signer.PublicKey().Type())
	}
	if f.public != nil && !sameKey(f.public, signer.PublicKey()) {
		return fmt.Errorf("the private key in %q does not fit the public one", f.path)
	}
	f.private, f.public, f.raw = algorithmSigner, signer.PublicKey(), raw
	return nil
}

// unlock decrypts the private key. A wrong passphrase is
// x509.IncorrectPasswordError.
func (f *keyFile) unlock(passphrase []byte) error {
	raw, err := ssh.ParseRawPrivateKeyWithPassphrase(f.encrypted, passphrase)
	if err != nil {
		return err
	}
	f.encrypted = nil
	return f.setPrivate(raw)
}

// readPrivateFile refuses, like ssh, a file that others can read
// (sshkey_perm_ok in authfile.c).
func readPrivateFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fmt.Errorf("%q is not a key file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if public, _ := parsePublicKey(data); err == nil && tooOpen(info) && public == nil {
		return nil, fmt.Errorf("permissions %#o for %q are too open: chmod 600 it", info.Mode().Perm(), path)
	}
	return data, err
}

// readPublicKey gives the public key of the first file that has one, with its
// comment, or nil.
func readPublicKey(paths ...string) (ssh.PublicKey, string) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || len(data) > maxKeyFile {
			continue
		}
		if key, comment := parsePublicKey(data); key != nil {
			return key, comment
		}
	}
	return nil, ""
}

func parsePublicKey(data []byte) (ssh.PublicKey, string) {
	key, comment, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil, ""
	}
	return key, comment
}

// readCertificate gives the user certificate in a file, or nil.
func readCertificate(path string) *ssh.Certificate {
	key, _ := readPublicKey(path)
	cert, ok := key.(*ssh.Certificate)
	if !ok || cert.CertType != ssh.UserCert {
		return nil
	}
	return cert
}
