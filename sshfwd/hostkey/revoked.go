package hostkey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// revokedBy reports whether a file of RevokedHostKeys revokes a key. The file is a KRL
// (krl.go), or else a list with a public key on each line, which also revokes the
// certificates that such a key has signed (sshkey_check_revoked in OpenSSH's
// authfile.c). line is the key's line in a list, 0 for a KRL. A file that cannot be read
// or understood is an error, since the key may be in it.
func revokedBy(ctx context.Context, file string, key ssh.PublicKey) (revoked bool, line int, err error) {
	data, err := config.ReadUserFile(ctx, file)
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
		if Same(Plain(listed), Plain(key)) || isCert && Same(Plain(listed), cert.SignatureKey) {
			return true, line, nil
		}
	}
	return false, 0, nil
}

// checkRevoked returns an error if a file of RevokedHostKeys revokes the key, or cannot be
// read. known_hosts is consulted only after that.
func (p *Policy) checkRevoked(key ssh.PublicKey) error {
	for _, file := range p.config.RevokedHostKeys {
		path, err := config.ExpandTilde(file)
		if err != nil {
			return err
		}
		revoked, line, err := revokedBy(p.ctx, path, key)
		if err != nil {
			return &config.Error{
				Problem: "the host's key cannot be checked against RevokedHostKeys",
				Advice:  "make the file readable and valid, or take RevokedHostKeys out of ssh_config",
				Err:     err,
			}
		}
		if revoked {
			return p.refuse(Revoked, key, &knownKey{file: path, number: line}, errors.New("it is in RevokedHostKeys "+path))
		}
	}
	return nil
}
