//go:build unix

package hostkey

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/sshfwd/config"
)

// CheckHostIP, for a host whose address is not loopback.
func TestHostKeyOfAnAddress(t *testing.T) {
	k := newHostKeysOfTest(t)
	const address, host = "[192.0.2.1]:2222 ", "[h]:2222 {KEY}\n"
	for name, c := range map[string]struct {
		text    string
		with    func(*config.Config)
		key     ssh.PublicKey
		want    Reason
		line    int
		added   string
		asked   bool
		noticed bool
	}{
		"new":                {text: host, added: address + "{KEY}\n", want: hostKeyOK, noticed: true},
		"known":              {text: host + address + "{KEY}\n", want: hostKeyOK},
		"changed":            {text: host + address + "{OTHER}\n", want: Changed, line: 2},
		"revoked":            {text: host + "@revoked " + address + "{KEY}\n", want: Revoked, line: 2},
		"asked":              {text: host + address + "{OTHER}\n", with: func(c *config.Config) { c.StrictHostKeyChecking = config.StrictAsk }, want: hostKeyOK, asked: true},
		"batch":              {text: host + address + "{OTHER}\n", with: func(c *config.Config) { c.StrictHostKeyChecking, c.BatchMode = config.StrictAsk, true }, want: Changed, line: 2},
		"accept-new":         {text: host + address + "{OTHER}\n", with: func(c *config.Config) { c.StrictHostKeyChecking = config.StrictAcceptNew }, want: Changed, line: 2},
		"no strictness":      {text: host + address + "{OTHER}\n", with: func(c *config.Config) { c.StrictHostKeyChecking = config.StrictNo }, want: hostKeyOK, noticed: true},
		"certificate":        {text: "@cert-authority [h]:2222 {CA}\n" + address + "{OTHER}\n", key: k.cert, want: hostKeyOK},
		"proxy":              {text: host + address + "{OTHER}\n", with: func(c *config.Config) { c.ProxyCommand = "x" }, want: hostKeyOK},
		"off":                {text: host + address + "{OTHER}\n", with: func(c *config.Config) { c.CheckHostIP = false }, want: hostKeyOK},
		"by a command":       {text: "", with: func(c *config.Config) { c.KnownHostsCommand = echo(k, "HOSTNAME", "[h]:2222 {KEY}") }, want: hostKeyOK, noticed: true},
		"command's address":  {text: host, with: func(c *config.Config) { c.KnownHostsCommand = echo(k, "ADDRESS", address+"{KEY}") }, want: hostKeyOK},
		"command's changed":  {text: host, with: func(c *config.Config) { c.KnownHostsCommand = echo(k, "ADDRESS", address+"{OTHER}") }, want: Changed, line: 1},
		"unknown host, too":  {text: address + "{OTHER}\n", with: func(c *config.Config) { c.StrictHostKeyChecking = config.StrictAcceptNew }, want: Changed, line: 1},
		"unknown host, both": {with: func(c *config.Config) { c.StrictHostKeyChecking = config.StrictAcceptNew }, added: "[h]:2222,[192.0.2.1]:2222 {KEY}\n", want: hostKeyOK, noticed: true},
	} {
		resolved := k.config(t, c.text)
		resolved.CheckHostIP = true
		if c.with != nil {
			c.with(resolved)
		}
		if c.key == nil {
			c.key = k.key
		}
		p := &asker.Script{Answers: []string{"yes"}}
		err := checkHostKey(t, resolved, p, "192.0.2.1", c.key)
		if c.want == hostKeyOK {
			require.NoError(t, err, name)
		} else {
			requireRefused(t, err, c.want, c.line)
		}
		require.Equal(t, c.asked, len(p.Asked) > 0, name)
		require.Equal(t, c.noticed, len(p.Notices) > 0, name)
		written, err := os.ReadFile(resolved.UserKnownHostsFiles[0])
		require.NoError(t, err)
		require.Equal(t, k.fill(c.text+c.added), string(written), name)
	}
}

// A changed address needs a yes; the fingerprint is not offered as an answer.
func TestHostKeyOfAnAddressAsks(t *testing.T) {
	k := newHostKeysOfTest(t)
	check := func(answers ...string) (*asker.Script, error) {
		c := k.config(t, "[h]:2222 {KEY}\n[192.0.2.1]:2222 {OTHER}\n")
		c.CheckHostIP, c.StrictHostKeyChecking = true, config.StrictAsk
		p := &asker.Script{Answers: answers}
		return p, checkHostKey(t, c, p, "192.0.2.1", k.key)
	}
	p, err := check(Fingerprint(k.key), "yes")
	require.NoError(t, err)
	require.Regexp(t, "^Warning: the ED25519 host key for '\\[h\\]:2222' differs from the key for the IP address '192.0.2.1'\n"+
		"Offending key for IP in \\S+:2\nAre you sure .*\\|Please type 'yes' or 'no': $", p.AllAsked())
	for _, answers := range [][]string{{"no", "yes"}, {"", "yes"}, {}} {
		_, err = check(answers...)
		requireRefused(t, err, Changed, 2)
	}
	c := k.config(t, "[h]:2222 {KEY}\n[192.0.2.1]:2222 {OTHER}\n")
	c.CheckHostIP, c.StrictHostKeyChecking = true, config.StrictAsk
	requireRefused(t, checkHostKey(t, c, nil, "192.0.2.1", k.key), Changed, 2)
}

// The address is not added for loopback, nor for a host that is named by its address.
func TestHostKeyOfAnAddressIsNotAddedTwice(t *testing.T) {
	k := newHostKeysOfTest(t)
	for _, c := range []struct{ host, remote string }{{"h", "127.0.0.1"}, {"h", "::1"}, {"192.0.2.1", "192.0.2.1"}} {
		resolved := k.config(t, "* {KEY}\n")
		resolved.CheckHostIP, resolved.Hostname, resolved.Port = true, c.host, 22
		text := k.fill(c.host + " {KEY}\n")
		require.NoError(t, os.WriteFile(resolved.UserKnownHostsFiles[0], []byte(text), 0o600))
		require.NoError(t, checkHostKey(t, resolved, nil, c.remote, k.key))
		written, err := os.ReadFile(resolved.UserKnownHostsFiles[0])
		require.NoError(t, err)
		require.Equal(t, text, string(written))
	}
	policy := New(t.Context(), &config.Config{CheckHostIP: true, Hostname: "h"}, nil, nil, env.QuietLog())
	_, err := policy.checkAddress(&net.UnixAddr{}, k.key)
	require.NoError(t, err)
}

// A command that fails for the address leaves the key unproven.
func TestHostKeyOfAnAddressWhoseCommandFails(t *testing.T) {
	k := newHostKeysOfTest(t)
	c := k.config(t, "[h]:2222 {KEY}\n")
	c.CheckHostIP, c.KnownHostsCommand = true, `/bin/sh -c "test %I != ADDRESS"`
	var bad *config.Error
	require.ErrorAs(t, checkHostKey(t, c, nil, "192.0.2.1", k.key), &bad)
}
