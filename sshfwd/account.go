package sshfwd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// An account is who has logged in where. The key is part of it, since authorized_keys
// decides by the key what is run for a user.
type account struct {
	id     string // a hash
	forced bool   // the user's certificate names the only command to run
}

// forcedCommand is the critical option of a certificate whose command sshd runs instead
// of the one that is asked for (OpenSSH's PROTOCOL.certkeys).
const forcedCommand = "force-command"

// account returns who has logged in. It is for after the log-in.
func (h *handshake) account() account {
	h.mu.Lock()
	keys := []ssh.PublicKey{h.hostKey}
	h.mu.Unlock()
	var a account
	for _, key := range h.auth.Keys() {
		keys = append(keys, key)
		if cert, ok := key.(*ssh.Certificate); ok && cert.CriticalOptions[forcedCommand] != "" {
			a.forced = true
		}
	}
	a.id = accountID(h.config, keys)
	return a
}

// accountID identifies an account. A certificate counts as its key, since it is often
// issued anew.
func accountID(c *config.Config, keys []ssh.PublicKey) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s@%s:%d\n", c.User, c.Hostname, c.Port)
	for _, key := range keys {
		fmt.Fprintln(sum, hostkey.Fingerprint(key))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Account identifies who has logged in where, for a memory.Accounts: a hash of the user,
// the host with its key, and the user's key if one was used. It is "" for a Client that
// Dial did not make.
func (c *Client) Account() string { return c.account.id }

// CommandForced reports whether the user's certificate makes the host run one command,
// whatever is asked for. It does not know what authorized_keys and sshd_config force.
func (c *Client) CommandForced() bool { return c.account.forced }

// AccountOf is [Client.Account] for a log-in by another program, whose keys are not known.
func AccountOf(c *config.Config) string { return accountID(c, nil) }
