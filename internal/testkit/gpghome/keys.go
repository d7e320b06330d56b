package gpghome

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
)

// The algorithms of a KeySpec.
const (
	Ed25519 = "ed25519" // signs; its subkey is cv25519
	RSA3072 = "rsa3072" // signs; its subkey is rsa3072
)

// A KeySpec says which key to make.
type KeySpec struct {
	UserID     string // for example "Alice <alice@example.org>"
	Algo       string // Ed25519 (also when empty) or RSA3072
	Passphrase string // empty: unprotected
}

// A Key is a generated key: a primary key that certifies and signs, and a
// subkey that decrypts.
type Key struct {
	UserID      string
	Fingerprint string // of the primary key, 40 hex digits
	Keygrip     string // of the primary key, 40 hex digits
	Subkey      string // fingerprint of the encryption subkey
	SubKeygrip  string
}

// Gpg runs gpg in batch mode without a terminal. stdin may be nil.
func (h *Home) Gpg(ctx context.Context, stdin io.Reader, args ...string) (stdout, stderr []byte, err error) {
	stdout, stderr, err = h.Run(ctx, stdin, "gpg", append([]string{"--batch", "--no-tty"}, args...)...)
	if err != nil {
		return stdout, stderr, fmt.Errorf("gpghome: %w", err)
	}
	return stdout, stderr, nil
}

// GenerateKey makes a key that never expires, starting the agent if none runs.
// The passphrase of a protected key is not left in the agent's cache: the
// first use asks the pinentry.
func (h *Home) GenerateKey(ctx context.Context, spec KeySpec) (Key, error) {
	primary, sub, err := spec.algorithms()
	if err != nil {
		return Key{}, err
	}
	if err := h.gpgWithPassphrase(ctx, spec.Passphrase, "--quick-generate-key", spec.UserID, primary, "cert,sign", "never"); err != nil {
		return Key{}, err
	}
	// "=" asks for the exact user id, where gpg would else match a substring.
	key, err := h.Key(ctx, "="+spec.UserID)
	if err != nil {
		return Key{}, err
	}
	if err := h.gpgWithPassphrase(ctx, spec.Passphrase, "--quick-add-key", key.Fingerprint, sub, "encr", "never"); err != nil {
		return Key{}, err
	}
	if spec.Passphrase != "" {
		if err := h.ForgetPassphrases(ctx); err != nil {
			return Key{}, err
		}
	}
	return h.Key(ctx, key.Fingerprint)
}

func (s KeySpec) algorithms() (primary, sub string, err error) {
	switch s.Algo {
	case "", Ed25519:
		return "ed25519", "cv25519", nil
	case RSA3072:
		return "rsa3072", "rsa3072", nil
	}
	return "", "", fmt.Errorf("gpghome: unknown algorithm %q", s.Algo)
}

// gpgWithPassphrase hands the passphrase over on stdin and not as an argument,
// and asks the agent not to use the pinentry; empty means no protection.
func (h *Home) gpgWithPassphrase(ctx context.Context, passphrase string, args ...string) error {
	args = append([]string{"--quiet", "--pinentry-mode", "loopback", "--passphrase-fd", "0"}, args...)
	_, _, err := h.Gpg(ctx, strings.NewReader(passphrase+"\n"), args...)
	return err
}

// Key returns the home's first secret key that matches a fingerprint or user
// id, with the first of its subkeys.
func (h *Home) Key(ctx context.Context, match string) (Key, error) {
	out, _, err := h.Gpg(ctx, nil, "--with-colons", "--with-keygrip", "--list-secret-keys", match)
	if err != nil {
		return Key{}, err
	}
	key := parseKey(string(out))
	if key.Fingerprint == "" || key.Keygrip == "" {
		return Key{}, fmt.Errorf("gpghome: no secret key %q", match)
	}
	return key, nil
}

// parseKey reads the colon listing (doc/DETAILS in GnuPG's source): an fpr and
// a grp record follow the sec or ssb record they belong to, the value is field
// 10.
func parseKey(listing string) Key {
	var key Key
	secrets, subs := 0, 0
	for line := range strings.Lines(listing) {
		field := strings.Split(line, ":")
		if len(field) < 10 {
			continue
		}
		switch field[0] {
		case "sec":
			secrets++
		case "ssb":
			subs++
		}
		if secrets > 1 || subs > 1 {
			break
		}
		key.set(field[0], field[9], subs > 0)
	}
	return key
}

func (k *Key) set(record, value string, sub bool) {
	switch {
	case record == "uid" && k.UserID == "":
		k.UserID = value
	case record == "fpr" && sub:
		k.Subkey = value
	case record == "fpr":
		k.Fingerprint = value
	case record == "grp" && sub:
		k.SubKeygrip = value
	case record == "grp":
		k.Keygrip = value
	}
}

// ImportPublic copies public keys from another home, all of them if none is
// named, without starting an agent. Ownertrust stays behind: see Trust.
func (h *Home) ImportPublic(ctx context.Context, from *Home, keys ...string) error {
	exported, _, err := from.Gpg(ctx, nil, append([]string{"--export"}, keys...)...)
	if err != nil {
		return err
	}
	// gpg --import starts an agent to look for secret keys unless told not to.
	_, _, err = h.Gpg(ctx, bytes.NewReader(exported), "--quiet", "--no-autostart", "--import")
	return err
}

// Trust gives a key ultimate ownertrust, so that gpg encrypts to it in batch
// mode.
func (h *Home) Trust(ctx context.Context, fingerprint string) error {
	_, _, err := h.Gpg(ctx, strings.NewReader(fingerprint+":6:\n"), "--quiet", "--no-autostart", "--import-ownertrust")
	return err
}
