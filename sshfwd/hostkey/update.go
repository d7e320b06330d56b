package hostkey

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// UpdateHostKeys (ssh_config(5)), as OpenSSH's clientloop.c does it: a host whose key is
// trusted says which keys it has. Those that are new are added to the user's known_hosts
// when the host has proved that it has them; those that it has no more are removed.

// The reasons why the user's files stay as they are, but for what goes wrong.
var (
	errNotTrusted = errors.New("the host's key is not one that the user's known_hosts has for it, or that the user has confirmed")
	errInDoubt    = errors.New("ssh -G does not say which the user's known_hosts files are")
	errNothing    = errors.New("nothing is new, and nothing obsolete")
	errComplex    = errors.New("a line for the host has a marker, a pattern or more than two names")
	errOtherName  = errors.New("a key is known under another name or address, too")
)

// An Update is what is to change in the user's known_hosts files.
type Update struct {
	config        *config.Config
	name, address string        // as in knownHost
	keys          []*currentKey // which the host has now
	old           []ssh.PublicKey
}

// A currentKey is one of the keys that the host says it has.
type currentKey struct {
	ssh.PublicKey
	known  nameMatch // by which names the user's files have it
	proved bool      // false if it is new and not proved yet
}

// nameMatch says which names of a host a line has.
type nameMatch struct{ host, address bool }

func (m nameMatch) any() bool { return m.host || m.address }

func (m nameMatch) or(other nameMatch) nameMatch {
	return nameMatch{m.host || other.host, m.address || other.address}
}

// Announced returns what the payload of hostkeys-00@openssh.com is to change, or why
// nothing is to change. It reads the user's files; ctx bounds that. Nothing has been proved
// then.
func (p *Policy) Announced(ctx context.Context, payload []byte) (*Update, error) {
	p.mu.Lock()
	trusted, address := p.trusted, p.address
	p.mu.Unlock()
	switch {
	case !trusted || len(p.config.UserKnownHostsFiles) == 0:
		return nil, errNotTrusted
	case p.config.KnownHostsInDoubt:
		return nil, errInDoubt
	case !mayStand(p.known.name):
		return nil, errComplex
	}
	keys, err := parseAnnouncement(payload, p.config.HostKeyAlgorithms)
	if err != nil {
		return nil, fmt.Errorf("the host's list of its keys: %w", err)
	}
	u := &Update{config: p.config, name: p.known.name, address: address}
	for _, key := range keys {
		u.keys = append(u.keys, &currentKey{PublicKey: key})
	}
	if len(keys) == 0 {
		return nil, errNothing
	}
	lines, unreadable := readKnownHosts(ctx, p.config.UserKnownHostsFiles)
	if len(unreadable) > 0 {
		return nil, errors.Join(unreadable...)
	}
	return u, u.compare(lines)
}

// compare finds out what is new and what is obsolete (client_input_hostkeys in
// clientloop.c). The error says why nothing is to be done.
func (u *Update) compare(lines []knownHostsLine) error {
	var isComplex, hasOtherName bool
	for _, l := range lines {
		key, ok := parseKnownKey(l.key)
		if !ok {
			continue
		}
		match := u.match(l.names)
		current := u.find(key)
		switch {
		case !match.any():
			hasOtherName = hasOtherName || current != nil
			continue
		case l.marker != markerNone:
			isComplex = true
			continue
		case u.address != "" && strings.Contains(l.names, ",") && match != nameMatch{true, true}:
			hasOtherName = true
			if !match.host {
				continue
			}
		}
		switch {
		case isPatternList(l.names):
			isComplex = true
		case current != nil:
			current.known = current.known.or(match)
		default:
			u.old = append(u.old, key)
		}
	}
	switch {
	case len(u.New()) == 0 && len(u.old) == 0:
		return errNothing
	case isComplex:
		return errComplex
	case hasOtherName || u.hasOldElsewhere(lines):
		return errOtherName
	}
	return nil
}

// hasOldElsewhere reports whether a key that is to be removed is known for another host:
// then this is perhaps one host with several names, which are to stay alike
// (check_old_keys_othernames).
func (u *Update) hasOldElsewhere(lines []knownHostsLine) bool {
	return len(u.old) > 0 && slices.ContainsFunc(lines, func(l knownHostsLine) bool {
		key, ok := parseKnownKey(l.key)
		return ok && !u.match(l.names).any() && indexOf(u.old, key) >= 0
	})
}

func (u *Update) match(names string) nameMatch {
	return nameMatch{
		host:    matchNames(u.name, names),
		address: u.address != "" && matchNames(u.address, names),
	}
}

func (u *Update) find(key ssh.PublicKey) *currentKey {
	i := slices.IndexFunc(u.keys, func(k *currentKey) bool { return Same(k, key) })
	if i < 0 {
		return nil
	}
	return u.keys[i]
}

// New are the keys that the host has to prove, in their order.
func (u *Update) New() (keys []ssh.PublicKey) {
	for _, key := range u.keys {
		if !key.known.any() {
			keys = append(keys, key.PublicKey)
		}
	}
	return keys
}

// isPatternList is hostspec_is_complex: ssh itself writes no patterns, and two names at
// most.
func isPatternList(names string) bool {
	return strings.ContainsAny(names, "*?") || strings.Count(names, ",") > 1
}

// Learned are the keys that the update adds, and Obsolete those that it removes, each as
// ssh names it: its type and its fingerprint.
func (u *Update) Learned() (list []string) {
	for _, key := range u.keys {
		if key.proved {
			list = append(list, keyTypeName(key)+" "+fingerprint(key, u.config.FingerprintHash))
		}
	}
	return list
}

// Obsolete is described with Learned.
func (u *Update) Obsolete() (list []string) {
	for _, key := range u.old {
		list = append(list, keyTypeName(key)+" "+fingerprint(key, u.config.FingerprintHash))
	}
	return list
}

// Write changes the user's files. New keys go into the first one only; from the others the
// host's lines are removed (update_known_hosts). One difference: if the first one does not
// exist it is created, where ssh would remove the lines and write the keys nowhere.
func (u *Update) Write(ctx context.Context) error {
	var errs []error
	for i, file := range u.config.UserKnownHostsFiles {
		keys := u.keys
		if i > 0 {
			keys = nil
		}
		if err := u.rewrite(ctx, file, keys); err != nil && !(i > 0 && errors.Is(err, fs.ErrNotExist)) {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
			if i == 0 {
				break // what the others have must not be lost
			}
		}
	}
	return errors.Join(errs...)
}
