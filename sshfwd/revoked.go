package sshfwd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
)

// revokedBy says whether a file of RevokedHostKeys revokes a key: a KRL
// (krl.go), or else a list with one public key a line, which also revokes the
// certificates that such a key has signed (sshkey_check_revoked in OpenSSH's
// authfile.c). line is where it stands in a list, 0 for a KRL. What cannot be
// read or understood is an error: nothing is known of the key then.
func revokedBy(file string, key ssh.PublicKey) (revoked bool, line int, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return false, 0, err
	}
	if bytes.HasPrefix(data, []byte(krlMagic)) {
		krl, err := parseKRL(data)
		if err != nil {
			return false, 0, fmt.Errorf("bad key revocation list %q: %w", file, err)
		}
		return krl.revokes(key), 0, nil
	}
	for text := range bytes.Lines(data) {
		line++
		entry := strings.TrimLeft(strings.TrimSuffix(string(text), "\n"), " \t")
		if entry == "" || entry[0] == '#' || entry[0] == 0 {
			continue
		}
		listed, ok := parseKnownKey(entry)
		if !ok {
			return false, line, fmt.Errorf("%s:%d is no public key", file, line)
		}
		cert, isCert := key.(*ssh.Certificate)
		if sameKey(plainKey(listed), plainKey(key)) || isCert && sameKey(plainKey(listed), cert.SignatureKey) {
			return true, line, nil
		}
	}
	return false, 0, nil
}

// checkRevoked is RevokedHostKeys. It comes before everything else that is
// asked of a key.
func (p *hostKeyPolicy) checkRevoked(key ssh.PublicKey) error {
	for _, file := range splitFiles(p.config.RevokedHostKeys) {
		path, err := expandTilde(file)
		if err != nil {
			return err
		}
		revoked, line, err := revokedBy(path, key)
		if err != nil {
			return &ConfigError{
				Problem: "the host's key cannot be checked against RevokedHostKeys",
				Advice:  "make the file readable and valid, or take RevokedHostKeys out of ssh_config",
				Err:     err,
			}
		}
		if revoked {
			return p.refuse(KeyRevoked, key, &knownKey{file: path, number: line}, errors.New("it is in RevokedHostKeys "+path))
		}
	}
	return nil
}
