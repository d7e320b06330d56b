package sshfwd

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/login"
)

// tokenConfig is for a real sshd that lets the token's key in; with noted, asked and used
// are filled with what the log-ins ask of it.
func tokenConfig(t *testing.T, token *fakesshd.Token, identities ...string) (c *config.Config, noted func(*DialOptions), asked *[]login.Token, used *[]login.TokenUse) {
	t.Helper()
	fakesshd.ServeToken(t, token)
	srv := sshd.Start(t, sshd.Config{Options: []string{"AuthorizedKeysFile " + token.AuthorizedKeys(t)}})
	c = authConfig(t, srv, identities, "IdentitiesOnly=no", "IdentityAgent="+token.Socket)
	asked, used = new([]login.Token), new([]login.TokenUse)
	note := func(token login.Token) func(login.TokenUse) {
		*asked = append(*asked, token)
		return func(use login.TokenUse) { *used = append(*used, use) }
	}
	return c, func(o *DialOptions) { o.TokenAsked = note }, asked, used
}

// tokenWait is how long somebody takes to touch a token, at least.
const tokenWait = 500 * time.Millisecond

// TestTokenLogin: real sshds let the tokens in, and we know which of them had to be touched.
func TestTokenLogin(t *testing.T) {
	t.Parallel()
	const card = "cardno:0006 12345678"
	for name, test := range map[string]struct {
		fido    bool
		comment string
		does    fakesshd.TokenDoes
		used    []login.TokenUse // nil: it was not taken for a token
	}{
		"FIDO, touched":      {true, "yk", fakesshd.TokenDoes{}, []login.TokenUse{{Touched: true}}},
		"FIDO, no touch":     {true, "yk", fakesshd.TokenDoes{Untouched: true, Takes: tokenWait}, []login.TokenUse{{}}},
		"card, touched":      {false, card, fakesshd.TokenDoes{Takes: tokenWait}, []login.TokenUse{{Touched: true}}},
		"card, no touch":     {false, card, fakesshd.TokenDoes{}, []login.TokenUse{{}}},
		"a key like another": {false, "me@laptop", fakesshd.TokenDoes{Takes: tokenWait}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := &fakesshd.Token{FIDO: test.fido, Comment: test.comment, Does: test.does}
			c, noted, asked, used := tokenConfig(t, token)
			requireLogin(t, c, nil, noted)
			require.Equal(t, test.used, *used)
			require.Len(t, *asked, len(*used))
			for _, key := range *asked {
				require.Equal(t, login.Token{Key: test.comment, Fingerprint: token.Fingerprint}, key)
			}
			require.Equal(t, 1, token.Asked())
		})
	}
}

// TestAgentRefuses: if the ssh-agent does not sign, the host is not blamed; the key is named,
// and the advice is about the agent. It takes precedence over a key whose passphrase
// BatchMode cannot ask for.
func TestAgentRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fido    bool
		comment string
		hint    string
	}{
		"token": {true, "yk\x1b", "connect again, and touch the token when it blinks"},
		"card":  {false, "cardno:0006 12345678", "connect again, and touch the token when it blinks"},
		"other": {false, "me@laptop", "ssh-add -X"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locked := sshkeys.Keygen(t, t.TempDir(), "locked", "-t", "ed25519", "-N", "secret")
			require.NoError(t, os.Remove(locked+".pub"))
			token := &fakesshd.Token{FIDO: test.fido, Comment: test.comment, Does: fakesshd.TokenDoes{Refuses: true}}
			c, noted, _, used := tokenConfig(t, token, locked)
			c.BatchMode = true
			denied := requireNoLogin[*login.AuthError](t, c, nil, noted)
			var refused *login.AgentRefusedError
			require.ErrorAs(t, denied, &refused)
			require.Equal(t, token.Fingerprint, refused.Fingerprint)
			require.Equal(t, name != "other", refused.IsToken)
			if refused.IsToken {
				require.Len(t, *used, 1)
				require.Error(t, (*used)[0].Err)
			}
			require.Contains(t, denied.Error(), "not logged in: the ssh-agent did not sign with key "+usertext.Quoted(test.comment)+" "+token.Fingerprint)
			require.NotContains(t, denied.Error(), "\x1b")
			require.Contains(t, denied.Hint(), test.hint)
		})
	}
}
