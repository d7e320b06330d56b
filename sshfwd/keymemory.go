package sshfwd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// keyMemory knows which of a list of keys a host let in last, so that it is
// offered first: each key that is refused costs a round trip and one of sshd's
// MaxAuthTries. It is a hint and no more. It is kept under a hash of the
// account, the host and the very list of keys, in order: once any of them
// changes, the order is ssh's again. So a key that the user has put before the
// others is never passed over for an older one that works as well, which may
// be another identity to the host.
type keyMemory struct {
	file    *stateFile
	id      string // of the account, the host and the list
	natural []*identity
	hint    *identity // what was remembered, nil for nothing
}

// recall moves the key that was good last time to the front of the list, if it
// can sign without a passphrase: to ask for one is not what a hint may cause.
func (a *authenticator) recall() {
	if a.config.StateDir == "" || len(a.identities) < 2 {
		return
	}
	m := &keyMemory{
		file: &stateFile{dir: a.config.StateDir, log: a.log}, natural: slices.Clone(a.identities),
		id: memoryID(a.config, a.identities),
	}
	a.memory = m
	fingerprint := m.file.get(m.id)
	i := slices.IndexFunc(a.identities, func(id *identity) bool { return id.fingerprint() == fingerprint })
	if fingerprint == "" || i < 0 {
		return
	}
	m.hint = a.identities[i]
	if m.hint.agent == nil && (m.hint.file == nil || m.hint.file.private == nil) {
		return
	}
	a.identities = slices.Insert(slices.Delete(a.identities, i, i+1), 0, m.hint)
}

// note remembers the key that was good. The first of the list needs no memory.
func (m *keyMemory) note(good *identity) {
	switch {
	case good == m.natural[0]:
		if m.hint != nil {
			m.file.put(m.id, "")
		}
	case good != m.hint && good.fingerprint() != "":
		m.file.put(m.id, good.fingerprint())
	}
}

// fingerprint is "" where only the passphrase can tell the public key. That of
// a certificate is not the one of its key: they are offered apart.
func (id *identity) fingerprint() string {
	if id.public == nil {
		return ""
	}
	return ssh.FingerprintSHA256(id.public)
}

func memoryID(c *Config, identities []*identity) string {
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
