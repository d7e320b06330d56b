package agentside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxKeyring bounds what is taken of one gpg's output.
	maxKeyring = 4 << 20
	// keyringTimeout bounds one run of gpg; a keyring on a network may be slow.
	keyringTimeout = 30 * time.Second
	// maxKeyringNote is what is kept of gpg's messages, for an error.
	maxKeyringNote = 200
)

// fingerprintForm: an OpenPGP v4 fingerprint has 20 bytes, a v5 or v6 one 32
// (RFC 9580 section 5.5.4).
var fingerprintForm = regexp.MustCompile(`^(?:[0-9A-F]{40}|[0-9A-F]{64})$`)

var (
	errKeyringLong = fmt.Errorf("gpg printed more than %d MiB", maxKeyring>>20)
	errNoKeysNamed = errors.New("no keys are named")
)

// A Key is an OpenPGP key of the local keyring.
type Key struct {
	Fingerprint string // of the primary key, in upper-case hex
	OwnerTrust  int    // as in gpg --export-ownertrust, 2 to 6; 0: none is set
}

// A Keyring is a local GnuPG home. The zero value is that of this process.
// Listing secret keys starts its agent, which is who knows of them.
type Keyring struct {
	// Gpg is gpg's path. Empty: it is searched in PATH, and then where GnuPG
	// installs itself.
	Gpg string

	// Env is gpg's environment, for another GNUPGHOME than this process's;
	// nil: this process's.
	Env []string
}

var errNoGpg = &hintedError{text: "gpg not found", hint: "install GnuPG, or send no keys to the host with --keys none"}

func (k Keyring) findGpg(dirs []string) (string, error) {
	if k.Gpg != "" {
		return k.Gpg, nil
	}
	if path, err := exec.LookPath("gpg"); err == nil {
		return path, nil
	}
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, "gpg")); err == nil {
			return path, nil
		}
	}
	return "", errNoGpg
}

// PublicKeys returns the keys that are named, or without names those with a
// secret part; with their ownertrust, in the keyring's order.
func (k Keyring) PublicKeys(ctx context.Context, names []string) ([]Key, error) {
	if len(names) == 0 {
		return k.SecretKeys(ctx)
	}
	// gpg lists what it finds and is silent about the rest if there is any.
	var fingerprints []string
	for _, name := range names {
		found, err := k.list(ctx, "--list-keys", "--", name)
		if err != nil {
			return nil, &KeyError{Name: name, Err: err}
		}
		fingerprints = append(fingerprints, found...)
	}
	return k.withTrust(ctx, fingerprints)
}

// SecretKeys returns the keys with a secret part, stubs for smart cards
// included (gpg --list-secret-keys).
func (k Keyring) SecretKeys(ctx context.Context) ([]Key, error) {
	fingerprints, err := k.list(ctx, "--list-secret-keys")
	if err != nil {
		return nil, fmt.Errorf("list the secret keys: %w", err)
	}
	return k.withTrust(ctx, fingerprints)
}

func (k Keyring) withTrust(ctx context.Context, fingerprints []string) ([]Key, error) {
	if len(fingerprints) == 0 {
		return nil, nil
	}
	trust, err := k.OwnerTrust(ctx, fingerprints)
	if err != nil {
		return nil, err
	}
	var keys []Key
	seen := map[string]bool{}
	for _, fingerprint := range fingerprints {
		if !seen[fingerprint] {
			keys = append(keys, Key{Fingerprint: fingerprint, OwnerTrust: trust[fingerprint]})
		}
		seen[fingerprint] = true
	}
	return keys, nil
}

// ExportPublic returns the public keys as gpg --export writes them, without the
// signatures of others (export-minimal). Keys that are not there are left out;
// if there is none at all it is an error.
func (k Keyring) ExportPublic(ctx context.Context, fingerprints []string) ([]byte, error) {
	if err := checkFingerprints(fingerprints); err != nil {
		return nil, fmt.Errorf("export the public keys: %w", err)
	}
	out, err := k.gpg(ctx, append([]string{"--export-options", "export-minimal", "--export", "--"}, fingerprints...)...)
	if err != nil {
		return nil, fmt.Errorf("export the public keys: %w", err)
	}
	if len(out) == 0 {
		return nil, errors.New("export the public keys: gpg found none of them")
	}
	return out, nil
}

// OwnerTrust returns the ownertrust of those keys that have one.
func (k Keyring) OwnerTrust(ctx context.Context, fingerprints []string) (map[string]int, error) {
	out, err := k.gpg(ctx, "--export-ownertrust")
	if err != nil {
		return nil, fmt.Errorf("list the ownertrust: %w", err)
	}
	return parseOwnerTrust(string(out), fingerprints), nil
}

func parseOwnerTrust(listing string, fingerprints []string) map[string]int {
	trust := map[string]int{}
	for line := range strings.Lines(listing) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(fields) < 2 || !slices.Contains(fingerprints, fields[0]) {
			continue
		}
		if value, err := strconv.Atoi(fields[1]); err == nil && value >= 2 && value <= 6 {
			trust[fields[0]] = value
		}
	}
	return trust
}

func checkFingerprints(fingerprints []string) error {
	if len(fingerprints) == 0 {
		return errNoKeysNamed
	}
	for _, fingerprint := range fingerprints {
		if !fingerprintForm.MatchString(fingerprint) {
			return fmt.Errorf("not a fingerprint: %q", fingerprint)
		}
	}
	return nil
}

// list returns the fingerprints of the primary keys that gpg lists.
func (k Keyring) list(ctx context.Context, args ...string) ([]string, error) {
	out, err := k.gpg(ctx, append([]string{"--with-colons", "--no-auto-check-trustdb"}, args...)...)
	if err != nil {
		return nil, err
	}
	return parseFingerprints(string(out)), nil
}

// parseFingerprints takes those of the primary keys (GnuPG, doc/DETAILS: the
// first fpr record after a pub or sec record).
func parseFingerprints(listing string) []string {
	var fingerprints []string
	primary := false
	for line := range strings.Lines(listing) {
		fields := strings.Split(line, ":")
		switch fields[0] {
		case "pub", "sec":
			primary = true
		case "fpr":
			if primary && len(fields) > 9 && fingerprintForm.MatchString(fields[9]) {
				fingerprints = append(fingerprints, fields[9])
			}
			primary = false
		}
	}
	return fingerprints
}

// gpg runs gpg without a terminal and returns what it printed.
func (k Keyring) gpg(ctx context.Context, args ...string) ([]byte, error) {
	path, err := k.findGpg(gpgconfDirs())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, keyringTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"--batch", "--no-tty"}, args...)...)
	withoutConsole(cmd)
	cmd.Env = k.Env
	cmd.WaitDelay = time.Second // an agent that gpg started may hold its stderr
	stdout, stderr := boundedBuffer{limit: maxKeyring}, boundedBuffer{limit: maxKeyringNote}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoGpg
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case stdout.cut:
		return nil, errKeyringLong
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		note, _, _ := strings.Cut(strings.TrimSpace(stderr.kept.String()), "\n")
		return nil, fmt.Errorf("gpg: %w: %q", err, note)
	}
	return stdout.kept.Bytes(), nil
}

// boundedBuffer keeps the first limit bytes, and takes the rest for nothing. The
// Buffer is not embedded: its ReadFrom would go round Write.
type boundedBuffer struct {
	kept  bytes.Buffer
	limit int
	cut   bool
}

// Write never fails, so that gpg is not ended by a closed pipe.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.kept.Len()
	b.cut = b.cut || len(p) > room
	_, _ = b.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

// A KeyError says that a key which was asked for is not in the local keyring.
type KeyError struct {
	Name string
	Err  error
}

func (e *KeyError) Error() string { return fmt.Sprintf("no public key %q: %v", e.Name, e.Err) }

func (e *KeyError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *KeyError) Hint() string {
	return "gpg --list-keys lists the keys; --keys none sends none of them"
}
