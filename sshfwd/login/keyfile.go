package login

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// maxKeyFile is the size limit of a key's file, in bytes, as in ssh (MAX_KEY_FILE_SIZE in
// OpenSSH's authfile.c).
const maxKeyFile = 1 << 20

// keyFile is an identity file. More is known of it once it is unlocked; but often the
// public half can be read while the private one is encrypted.
type keyFile struct {
	path      string
	public    ssh.PublicKey // nil if it can be had with the passphrase only
	comment   string        // of the public key's file, "" if unknown
	private   ssh.AlgorithmSigner
	raw       any    // what private was made from
	encrypted []byte // nil once unlocked
	unusable  error  // why there is no private key here; an agent may have it
	added     bool   // addToAgent was called
}

// loadKeyFile reads a private key and its .pub file, or a public key, which stands for one
// that the agent has. If there is neither, it returns why the file could not be used.
func loadKeyFile(ctx context.Context, path string) (*keyFile, error) {
	f := &keyFile{path: path}
	data, err := readPrivateFile(path)
	if err == nil {
		err = f.parse(data)
	}
	f.unusable = err
	public, comment := readPublicKey(ctx, path+".pub", path)
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
		f.public = missing.PublicKey
	}
	if encryption := unreadableEncryption(data); encryption != "" {
		return fmt.Errorf("%s cannot be decrypted here: ssh-add it, or rewrite it by ssh-keygen -p -f %s", encryption, f.path)
	}
	if missing != nil {
		f.encrypted = data
		return nil
	}
	return fmt.Errorf("no private key that can be used here (a security key, or one in another format, works through ssh-agent: ssh-add it): %w", err)
}

// unreadableEncryption names a key's encryption if package ssh cannot decrypt it, else it
// returns "". The user shall not be asked for a passphrase in vain.
func unreadableEncryption(data []byte) string {
	block, _ := pem.Decode(data)
	if block == nil {
		return ""
	}
	switch block.Type {
	case "ENCRYPTED PRIVATE KEY":
		return "a PKCS#8 key with a passphrase"
	case "OPENSSH PRIVATE KEY": // PROTOCOL.key in OpenSSH's sources
		var head struct {
			Cipher string
			Rest   []byte `ssh:"rest"`
		}
		body, ok := bytes.CutPrefix(block.Bytes, []byte("openssh-key-v1\x00"))
		if ok && ssh.Unmarshal(body, &head) == nil && !slices.Contains([]string{"none", "aes256-ctr", "aes256-cbc"}, head.Cipher) {
			return fmt.Sprintf("a key under the cipher %.40q", head.Cipher)
		}
	}
	return ""
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
	if f.public != nil && !hostkey.Same(f.public, signer.PublicKey()) {
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
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a key file", path) // opening a FIFO may block for ever
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err = file.Stat(); err != nil {
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

// readPublicKey returns the public key of the first file that has one, and its comment, or
// nil.
func readPublicKey(ctx context.Context, paths ...string) (ssh.PublicKey, string) {
	for _, path := range paths {
		data, err := config.ReadUserFile(ctx, path)
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

// readCertificate returns the user certificate in a file, or in the one with .pub behind its
// name (sshkey_load_public in OpenSSH's authfile.c), or nil.
func readCertificate(ctx context.Context, path string) *ssh.Certificate {
	key, _ := readPublicKey(ctx, path, path+".pub")
	cert, ok := key.(*ssh.Certificate)
	if !ok || cert.CertType != ssh.UserCert {
		return nil
	}
	return cert
}
