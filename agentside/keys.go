package agentside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gpg-bridge/internal/usertext"
)

const (
	// maxKeyring bounds the output of one run of gpg, in bytes.
	maxKeyring = 4 << 20
	// keyringTimeout bounds one run of gpg; a keyring on a network may be slow.
	keyringTimeout = 10 * time.Second
	// maxNamed is how many fingerprints one run of gpg is given: on Windows, a
	// command line has at most 32767 characters.
	maxNamed = 400
	// maxKeyringNote is how much of gpg's messages is kept for an error, in bytes.
	maxKeyringNote = 200
)

// fingerprintForm is the form of a fingerprint: an OpenPGP v4 fingerprint has 20 bytes, a v5 or v6 one 32
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

	// SelfSignatures are the valid signatures of the key on its own parts, each as
	// "PART-CLASS-CREATED". PART is the first 8 hex digits of a user ID's hash, or
	// the last 8 of a subkey's ID, in upper case, or empty for the primary key;
	// CLASS (RFC 9580 section 5.2.1) is two lower-case hex digits; CREATED is in
	// seconds since 1970. Any change of a key makes a new signature.
	SelfSignatures []string
}

// A Keyring is a local GnuPG home. The zero value is that of this process.
// Listing secret keys starts its agent, which holds them.
type Keyring struct {
	// Gpg is gpg's path. If it is empty, gpg is searched in PATH, and then where
	// GnuPG installs itself.
	Gpg string

	// Env is gpg's environment, for a GNUPGHOME other than this process's. If it
	// is nil, gpg has this process's environment.
	Env []string
}

var errNoGpg = usertext.WithHint("gpg not found", "install GnuPG, or send no keys to the host with --keys none")

func (k Keyring) findGpg() (string, error) {
	if k.Gpg != "" {
		return k.Gpg, nil
	}
	if path := findProgram("gpg", gpgconfDirs); path != "" {
		return path, nil
	}
	return "", errNoGpg
}

// PublicKeys returns the named keys, or all keys with a secret part if names is empty,
// with their ownertrust, in the keyring's order.
func (k Keyring) PublicKeys(ctx context.Context, names []string) ([]Key, error) {
	if len(names) == 0 {
		return k.SecretKeys(ctx)
	}
	// One name at a time: gpg fails only if it finds none of the names that it is given.
	var keys []Key
	for _, name := range names {
		found, err := k.list(ctx, "--list-keys", "--", name)
		if err != nil {
			return nil, &KeyError{Name: name, Err: err}
		}
		keys = append(keys, found...)
	}
	return k.withTrust(ctx, keys)
}

// SecretKeys returns the keys with a secret part, stubs for smart cards
// included (gpg --list-secret-keys).
func (k Keyring) SecretKeys(ctx context.Context) ([]Key, error) {
	keys, err := k.list(ctx, "--list-secret-keys")
	if err != nil {
		return nil, fmt.Errorf("list the secret keys: %w", err)
	}
	return k.withTrust(ctx, keys)
}

// withTrust adds the ownertrust, and leaves out duplicates.
func (k Keyring) withTrust(ctx context.Context, listed []Key) ([]Key, error) {
	if len(listed) == 0 {
		return nil, nil
	}
	trust, err := k.OwnerTrust(ctx)
	if err != nil {
		return nil, err
	}
	var keys []Key
	seen := map[string]bool{}
	for _, key := range listed {
		key.OwnerTrust = trust[key.Fingerprint]
		if !seen[key.Fingerprint] {
			keys = append(keys, key)
		}
		seen[key.Fingerprint] = true
	}
	return keys, nil
}

// ExportPublic returns the public keys as gpg --armor --export writes them,
// without other people's signatures (export-minimal). Keys that the keyring lacks are left
// out; it is an error if it lacks all of them.
func (k Keyring) ExportPublic(ctx context.Context, fingerprints []string) ([]byte, error) {
	if err := checkFingerprints(fingerprints); err != nil {
		return nil, fmt.Errorf("export the public keys: %w", err)
	}
	var exported []byte
	for some := range slices.Chunk(fingerprints, maxNamed) {
		out, err := k.gpg(ctx, append([]string{"--armor", "--export-options", "export-minimal", "--export", "--"}, some...)...)
		if err != nil {
			return nil, fmt.Errorf("export the public keys: %w", err)
		}
		exported = append(exported, out...)
	}
	if len(exported) == 0 {
		return nil, errors.New("export the public keys: gpg found none of them")
	}
	return exported, nil
}

// OwnerTrust returns the ownertrust of those keys that have one.
func (k Keyring) OwnerTrust(ctx context.Context) (map[string]int, error) {
	out, err := k.gpg(ctx, "--export-ownertrust")
	if err != nil {
		return nil, fmt.Errorf("list the ownertrust: %w", err)
	}
	return parseOwnerTrust(string(out)), nil
}

func parseOwnerTrust(listing string) map[string]int {
	trust := map[string]int{}
	for line := range strings.Lines(listing) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(fields) < 2 || !fingerprintForm.MatchString(fields[0]) {
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

// gpg runs gpg without a terminal and returns what it printed.
func (k Keyring) gpg(ctx context.Context, args ...string) ([]byte, error) {
	stdout := boundedBuffer{limit: maxKeyring}
	err := k.run(ctx, &stdout, args...)
	if err == nil && stdout.cut {
		err = errKeyringLong
	}
	if err != nil {
		return nil, err
	}
	return stdout.kept.Bytes(), nil
}

// run runs gpg without a terminal.
func (k Keyring) run(ctx context.Context, stdout io.Writer, args ...string) error {
	path, err := k.findGpg()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, keyringTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"--batch", "--no-tty"}, args...)...)
	apart(cmd)
	cmd.Env = k.Env
	cmd.WaitDelay = time.Second // an agent that gpg has started may keep its stderr open
	stderr := boundedBuffer{limit: maxKeyringNote}
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	start := time.Now()
	err = cmd.Run()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoGpg
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return newSilentError("gpg", args, start, keyringTimeout)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		note, _, _ := strings.Cut(strings.TrimSpace(stderr.kept.String()), "\n")
		return fmt.Errorf("gpg: %w: %q", err, note)
	}
	return nil
}

// boundedBuffer keeps the first limit bytes and drops the rest. The Buffer is not
// embedded, because io.Copy would use its ReadFrom instead of Write.
type boundedBuffer struct {
	kept  bytes.Buffer
	limit int
	cut   bool
}

// Write never fails, so that gpg does not die of a closed pipe.
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
