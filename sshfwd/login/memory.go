package login

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/memory"
	"gpg-bridge/sshfwd/config"
)

const keyMemoryName = "last-keys"

// lastTry is the index of the last key that sshd lets a client offer: MaxAuthTries is 6
// by default (sshd_config(5)).
const lastTry = 5

// keyMemory remembers which of a list of keys a host accepted last, if that key comes
// after lastTry: it is then moved there, so that it is offered at all. The keys before it
// keep the user's order, since another key may be another identity to the host. This is
// only a hint. It is stored under a hash of the account, the host and the list of keys in
// its order: once any of them changes, the order is ssh's again.
type keyMemory struct {
	file    *memory.File
	id      string      // of the account, the host and the list
	ordered []*identity // in ssh's order
	hint    *identity   // what was remembered, nil for nothing
}

// recall moves the key that was accepted last time to lastTry, if it can sign without a
// passphrase: a hint must not cause a prompt.
func (l *Login) recall() {
	if l.StateDir == "" || len(l.keys.identities) <= lastTry+1 {
		return
	}
	m := &keyMemory{
		file: &memory.File{Dir: l.StateDir, Name: keyMemoryName, Log: l.Log}, ordered: slices.Clone(l.keys.identities),
		id: memoryID(l.Config, l.keys.identities),
	}
	l.keys.memory = m
	fingerprint := m.file.Get(m.id)
	i := slices.IndexFunc(l.keys.identities, func(id *identity) bool { return id.fingerprint() == fingerprint })
	if fingerprint == "" || i <= lastTry { // it is offered anyway
		return
	}
	m.hint = l.keys.identities[i]
	if m.hint.agent == nil && (m.hint.file == nil || m.hint.file.private == nil) {
		return
	}
	l.keys.identities = slices.Insert(slices.Delete(l.keys.identities, i, i+1), lastTry, m.hint)
}

// note remembers the accepted key, if it comes after lastTry.
func (m *keyMemory) note(accepted *identity) {
	switch {
	case slices.Index(m.ordered, accepted) <= lastTry:
		if m.hint != nil {
			m.file.Put(m.id, "")
		}
	case accepted != m.hint && accepted.fingerprint() != "":
		m.file.Put(m.id, accepted.fingerprint())
	}
}

// fingerprint is "" if the public key can be had with the passphrase only. A certificate
// has another fingerprint than its key, since the two are offered separately.
func (id *identity) fingerprint() string {
	if id.public == nil {
		return ""
	}
	return ssh.FingerprintSHA256(id.public)
}

func memoryID(c *config.Config, identities []*identity) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s@%s:%d\n", c.User, c.Hostname, c.Port)
	for _, id := range identities {
		name := id.fingerprint()
		if name == "" {
			name = id.label
		}
		fmt.Fprintln(h, strings.ReplaceAll(name, "\n", " "))
	}
	return hex.EncodeToString(h.Sum(nil))
}
