package hostkey

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// What the user is told when an unknown key is refused or accepted, and what is written.
func TestHostKeyUnknown(t *testing.T) {
	k := newHostKeysOfTest(t)
	for name, c := range map[string]struct {
		strict  config.Strictness
		batch   bool
		answers []string
		ok      bool
		asked   int
	}{
		"yes":            {strict: config.StrictAsk, answers: []string{" YES\n"}, ok: true, asked: 1},
		"no":             {strict: config.StrictAsk, answers: []string{"No", "yes"}, asked: 1},
		"nothing":        {strict: config.StrictAsk, answers: []string{" ", "yes"}, asked: 1},
		"no answer":      {strict: config.StrictAsk, asked: 1},
		"perhaps":        {strict: config.StrictAsk, answers: []string{"y", "SHA256:x", "yes"}, ok: true, asked: 3},
		"fingerprint":    {strict: config.StrictAsk, answers: []string{Fingerprint(k.key)}, ok: true, asked: 1},
		"its own case":   {strict: config.StrictAsk, answers: []string{strings.ToLower(Fingerprint(k.key)), "no"}, asked: 2},
		"batch":          {strict: config.StrictAsk, batch: true, answers: []string{"yes"}},
		"strict":         {strict: config.StrictYes, answers: []string{"yes"}},
		"new ones":       {strict: config.StrictAcceptNew, ok: true},
		"everything":     {strict: config.StrictNo, ok: true},
		"everything, -B": {strict: config.StrictNo, batch: true, ok: true},
	} {
		for _, key := range []ssh.PublicKey{k.key, k.cert} { // which no authority vouches for
			resolved := k.config(t, "")
			resolved.StrictHostKeyChecking, resolved.BatchMode = c.strict, c.batch
			p := &asker.Script{Answers: c.answers}
			err := checkHostKey(t, resolved, p, "127.0.0.1", key)
			require.Equal(t, c.ok, err == nil, name)
			require.Len(t, p.Asked, c.asked, name)
			written, readErr := os.ReadFile(resolved.UserKnownHostsFiles[0])
			require.NoError(t, readErr)
			if !c.ok {
				require.Equal(t, resolved.UserKnownHostsFiles[0], requireRefused(t, err, Unknown, 0).File)
				require.Empty(t, written, name)
				continue
			}
			require.Equal(t, k.fill("[h]:2222 {KEY}\n"), string(written), name)
			require.Contains(t, p.AllNotices(), "Permanently added '[h]:2222' (ED25519)")
		}
	}
}

func TestHostKeyWithNobodyToAsk(t *testing.T) {
	k := newHostKeysOfTest(t)
	c := k.config(t, "")
	c.StrictHostKeyChecking = config.StrictAsk
	require.ErrorIs(t, checkHostKey(t, c, nil, "127.0.0.1", k.key), usertext.ErrNoPrompt)
	c.StrictHostKeyChecking = config.StrictNo
	p := &asker.Script{}
	c.UserKnownHostsFiles = []string{t.TempDir()} // which is no file
	require.NoError(t, checkHostKey(t, c, p, "127.0.0.1", k.key))
	require.Contains(t, p.AllNotices(), "Failed to add the host")
	require.NoError(t, checkHostKey(t, c, nil, "127.0.0.1", k.key))
}

// Where there is no file to add a key to, nobody is asked and no key is accepted.
func TestHostKeyUnknownWithoutAFile(t *testing.T) {
	k := newHostKeysOfTest(t)
	for _, strict := range []config.Strictness{config.StrictAsk, config.StrictYes, config.StrictAcceptNew, config.StrictNo} {
		for _, key := range []ssh.PublicKey{k.key, k.cert} {
			c := k.config(t, "")
			c.StrictHostKeyChecking, c.UserKnownHostsFiles = strict, nil
			p := &asker.Script{Answers: []string{"yes"}}
			err := requireRefused(t, checkHostKey(t, c, p, "127.0.0.1", key), Unknown, 0)
			require.Empty(t, err.File)
			require.Contains(t, err.Hint(), "UserKnownHostsFile")
			require.Empty(t, p.Asked)
			require.Empty(t, p.Notices)
		}
	}
	c := k.config(t, "* {KEY}\n") // of all users
	c.GlobalKnownHostsFiles, c.UserKnownHostsFiles, c.CheckHostIP = c.UserKnownHostsFiles, nil, true
	require.NoError(t, checkHostKey(t, c, nil, "192.0.2.1", k.key))
}

// The question lists the other names that have the key. There is no question about a
// changed or revoked key.
func TestHostKeyQuestion(t *testing.T) {
	k := newHostKeysOfTest(t)
	ask := func(text string, with func(*config.Config)) string {
		c := k.config(t, text)
		c.StrictHostKeyChecking = config.StrictAsk
		if with != nil {
			with(c)
		}
		p := &asker.Script{Answers: []string{"no"}}
		requireRefused(t, checkHostKey(t, c, p, "192.0.2.1", k.key), Unknown, 0)
		return p.AllAsked()
	}
	require.Contains(t, ask("", nil), "The authenticity of host '[h]:2222 ([192.0.2.1]:2222)' can't be established.\n"+
		"ED25519 key fingerprint is "+Fingerprint(k.key)+".\nThis key is not known by any other names.\n")
	require.Contains(t, ask("", func(c *config.Config) { c.ProxyCommand = "x" }), "<no hostip for proxy command>")
	require.Contains(t, ask("", func(c *config.Config) { c.ProxyJump = "x" }), "<no hostip for proxy command>")
	text := ask("other,o\x1b {KEY}\nthird {OTHER}\n@revoked fourth {KEY}\n@cert-authority fifth {KEY}\n"+
		hashName("sixth", make([]byte, 20))+" {KEY}\nseventh bad\n", nil)
	require.Regexp(t, `following other names/addresses:\n    \S+:1: other,o\\x1b\n    \S+:5: \[hashed name\]\nAre you sure`, text)
}
