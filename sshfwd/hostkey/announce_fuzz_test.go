package hostkey

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// FuzzAnnouncement: whatever a host says of its keys, they are different ones, few, no
// certificates and of types that are allowed; and what follows from them changes nothing in
// known_hosts that is not the host's, even without a proof.
func FuzzAnnouncement(f *testing.F) {
	one, two, cert := sshkeys.Fixed(f, 1), sshkeys.Fixed(f, 2), sshkeys.FixedCert(f, 1)
	f.Add(announcement(one, two), "h {1}\nx {2}\n")
	f.Add(announcement(one, cert), "h,192.0.2.1 {1}\n@revoked h {2}\n")
	f.Add(append(announcement(two), 0, 0, 0, 1, 0), "h {1}\n* {2}\n")
	f.Fuzz(func(t *testing.T, payload []byte, text string) {
		keys, err := parseAnnouncement(payload, []string{"ssh-ed25519"})
		if err != nil {
			require.Empty(t, keys)
			return
		}
		require.LessOrEqual(t, len(keys), maxAnnounced)
		require.LessOrEqual(t, len(announcement(keys...)), len(payload))
		u := &Update{config: &config.Config{}, name: "h"}
		for i, key := range keys {
			require.Equal(t, "ssh-ed25519", key.Type())
			require.Equal(t, i, indexOf(keys, key))
			u.keys = append(u.keys, &currentKey{PublicKey: key})
		}
		text = fillKeys(text, one, two)
		lines := parseKnownHosts([]byte(text), "f")
		if u.compare(lines) != nil {
			return
		}
		out, _ := u.rewritten([]byte(text), u.keys)
		after := parseKnownHosts(out, "f")
		require.Equal(t, others(u, lines), others(u, after))
		for _, key := range keysFor(after, "h") {
			require.GreaterOrEqual(t, indexOf(keys, key.key), 0)
		}
		again, changed := u.rewritten(out, u.keys)
		require.False(t, changed)
		require.Equal(t, string(out), string(again))
	})
}

func fillKeys(text string, one, two ssh.PublicKey) string {
	return strings.NewReplacer("{1}", sshkeys.Authorized(one), "{2}", sshkeys.Authorized(two)).Replace(text)
}

// others are the lines that are not the host's, with their names and keys.
func others(u *Update, lines []knownHostsLine) (list []string) {
	for _, l := range lines {
		if _, ok := parseKnownKey(l.key); !ok || !u.match(l.names).any() {
			list = append(list, l.names+" "+l.key)
		}
	}
	return list
}
