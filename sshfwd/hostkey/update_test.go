package hostkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// What the real ssh does is compared in sshfwd (hostkeys_openssh_test.go); here is what it
// cannot be made to do: addresses that are not loopback, faults, other writers.

// announcement is the payload by which a host says that it has these keys.
func announcement(keys ...ssh.PublicKey) (payload []byte) {
	for _, key := range keys {
		payload = appendString(payload, key.Marshal())
	}
	return payload
}

// trusting is a policy that has accepted k.key at that address.
func trusting(t *testing.T, c *config.Config, k hostKeysOfTest, remote string) *Policy {
	t.Helper()
	policy := New(t.Context(), c, nil, nil, env.QuietLog())
	require.NoError(t, policy.Check("", &net.TCPAddr{IP: net.ParseIP(remote), Port: 2222}, k.key))
	return policy
}

// With CheckHostIP each line has the name, the address, or both (hostkeys_find in
// clientloop.c, hostfile_replace_entries in hostfile.c).
func TestUpdateWithAnAddress(t *testing.T) {
	const host, address = "[h]:2222", "[192.0.2.1]:2222"
	for name, c := range map[string]struct{ before, after string }{
		"both on a line":            {host + "," + address + " {KEY}\n", host + "," + address + " {KEY}\n" + host + "," + address + " {OTHER}\n"},
		"each on a line":            {host + " {KEY}\n" + address + " {KEY}\n", host + " {KEY}\n" + address + " {KEY}\n" + host + "," + address + " {OTHER}\n"},
		"name is missing":           {host + " {KEY}\n" + address + " {KEY}\n" + address + " {OTHER}\n" + host + " {CA}\n", host + " {KEY}\n" + address + " {KEY}\n" + address + " {OTHER}\n" + host + " {OTHER}\n"},
		"address is missing":        {host + "," + address + " {KEY}\n" + host + " {OTHER}\n" + host + " {CA}\n", host + "," + address + " {KEY}\n" + host + " {OTHER}\n" + address + " {OTHER}\n"},
		"the name's other address":  {host + ",192.0.2.2 {KEY}\n" + address + " {KEY}\n", ""},
		"the address's other name":  {host + " {KEY}\n" + "g," + address + " {KEY}\n", ""},
		"an obsolete address":       {host + "," + address + " {KEY}\n" + address + " {CA}\n", host + "," + address + " {KEY}\n" + host + "," + address + " {OTHER}\n"},
		"the address is incomplete": {host + "," + address + " {KEY}\n" + host + " {OTHER}\n", ""},
	} {
		k := newHostKeysOfTest(t)
		resolved := k.config(t, c.before)
		resolved.CheckHostIP, resolved.StrictHostKeyChecking = true, config.StrictNo
		if c.after == "" {
			c.after = c.before
		}
		update, err := trusting(t, resolved, k, "192.0.2.1").Announced(t.Context(), announcement(k.key, k.other))
		if err == nil {
			for _, key := range update.keys {
				key.proved = true
			}
			require.NoError(t, update.Write(t.Context()))
		}
		written, err := os.ReadFile(resolved.UserKnownHostsFiles[0])
		require.NoError(t, err)
		require.Equal(t, k.fill(c.after), string(written), name)
	}
}

// A list that no good server sends changes nothing; what is no key that we know, and a
// certificate, is passed over.
func TestAnnouncements(t *testing.T) {
	k := newHostKeysOfTest(t)
	unknown := appendString(nil, []byte("x"))
	var many []ssh.PublicKey
	for range maxAnnounced + 1 {
		many = append(many, sshkeys.New(t))
	}
	for name, c := range map[string]struct {
		payload []byte
		keys    int
		why     string
	}{
		"one":            {announcement(k.key), 1, ""},
		"none":           {nil, 0, ""},
		"unknown":        {append(appendString(appendString(nil, unknown), nil), announcement(k.key)...), 1, ""},
		"a certificate":  {announcement(k.cert, k.key), 1, ""},
		"twice":          {announcement(k.key, k.other, k.key), 0, "twice"},
		"truncated":      {announcement(k.key)[:20], 0, "truncated"},
		"no length":      {[]byte{0, 0, 0}, 0, "truncated"},
		"a great length": {[]byte{255, 255, 255, 255, 1}, 0, "truncated"},
		"as many":        {announcement(many[:maxAnnounced]...), maxAnnounced, ""},
		"too many":       {announcement(many...), 0, "more than"},
	} {
		keys, err := parseAnnouncement(c.payload, nil)
		if c.why != "" {
			require.ErrorContains(t, err, c.why, name)
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, keys, c.keys, name)
	}
	keys, err := parseAnnouncement(announcement(k.key), []string{"rsa-sha2-512", ssh.CertAlgoED25519v01})
	require.NoError(t, err)
	require.Empty(t, keys)
}

// A key without a good signature is not learned.
func TestProofs(t *testing.T) {
	k := newHostKeysOfTest(t)
	session := []byte("session")
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	rsaSigner, err := ssh.NewSignerFromKey(rsaKey)
	require.NoError(t, err)
	sign := func(s ssh.Signer, data []byte, algorithm string) []byte {
		signature, err := s.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, data, algorithm)
		require.NoError(t, err)
		return appendString(nil, ssh.Marshal(signature))
	}
	good := sign(signer, proofData(session, signer.PublicKey()), ssh.KeyAlgoED25519)
	ofRSA := func(algorithm string) []byte {
		return sign(rsaSigner, proofData(session, rsaSigner.PublicKey()), algorithm)
	}
	for name, c := range map[string]struct {
		key      ssh.PublicKey
		answer   []byte
		exchange string
		proved   bool
		fails    bool
	}{
		"good":               {signer.PublicKey(), good, ssh.KeyAlgoED25519, true, false},
		"no signature":       {signer.PublicKey(), nil, ssh.KeyAlgoED25519, false, true},
		"malformed":          {signer.PublicKey(), appendString(nil, []byte("x")), ssh.KeyAlgoED25519, false, true},
		"another session's":  {signer.PublicKey(), sign(signer, proofData([]byte("x"), signer.PublicKey()), ssh.KeyAlgoED25519), "", false, true},
		"another key's":      {k.other, good, ssh.KeyAlgoED25519, false, true},
		"more":               {signer.PublicKey(), append(good[:len(good):len(good)], 0), ssh.KeyAlgoED25519, true, true},
		"SHA-512":            {rsaSigner.PublicKey(), ofRSA(ssh.KeyAlgoRSASHA512), ssh.KeyAlgoED25519, true, false},
		"SHA-1":              {rsaSigner.PublicKey(), ofRSA(ssh.KeyAlgoRSA), ssh.KeyAlgoED25519, false, false},
		"the exchange's":     {rsaSigner.PublicKey(), ofRSA(ssh.KeyAlgoRSASHA256), ssh.KeyAlgoRSASHA256, true, false},
		"not the exchange's": {rsaSigner.PublicKey(), ofRSA(ssh.KeyAlgoRSASHA256), ssh.KeyAlgoRSASHA512, false, true},
	} {
		resolved := k.config(t, "[h]:2222 {KEY}\n")
		update, err := trusting(t, resolved, k, "127.0.0.1").Announced(t.Context(), announcement(k.key, c.key))
		require.NoError(t, err)
		request, payload := update.ProveRequest()
		require.Equal(t, proveRequest, request)
		require.Equal(t, announcement(c.key), payload)
		err = update.Prove(session, c.exchange, c.answer)
		require.Equal(t, c.fails, err != nil, "%s: %v", name, err)
		require.Equal(t, c.proved, update.keys[1].proved, name)
		require.NoError(t, update.Write(t.Context()))
		written, err := os.ReadFile(resolved.UserKnownHostsFiles[0])
		require.NoError(t, err)
		require.Equal(t, c.proved, strings.Contains(string(written), sshkeys.Authorized(c.key)), name)
	}
}

// What several processes write at once is all there at the end: some learn keys of one
// host, others remember hosts.
func TestUpdateAtOnce(t *testing.T) {
	k := newHostKeysOfTest(t)
	resolved := k.config(t, "[h]:2222 {KEY}\n")
	file := resolved.UserKnownHostsFiles[0]
	var wg sync.WaitGroup
	errs := make(chan error, 40)
	hosts := make([]ssh.PublicKey, 10)
	for i := range hosts {
		hosts[i] = sshkeys.New(t)
		update, err := trusting(t, resolved, k, "127.0.0.1").Announced(t.Context(), announcement(k.key, sshkeys.New(t)))
		require.NoError(t, err)
		update.keys[1].proved = true
		wg.Go(func() { errs <- update.Write(t.Context()) })
		wg.Go(func() { errs <- appendKnownHost(t.Context(), file, knownHost{name: "x", key: hosts[i]}, i%2 == 0) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	for _, key := range hosts {
		v, _ := check(keysFor(mustRead(t, file), "x"), key)
		require.Equal(t, hostKnown, v)
	}
	require.Len(t, keysFor(mustRead(t, file), "[h]:2222"), 2) // the last one's
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// What others have added since the files were read is kept.
func TestUpdateBesideAnotherWriter(t *testing.T) {
	k := newHostKeysOfTest(t)
	resolved := k.config(t, "[h]:2222 {KEY}\n")
	file := resolved.UserKnownHostsFiles[0]
	update, err := trusting(t, resolved, k, "127.0.0.1").Announced(t.Context(), announcement(k.key, k.other))
	require.NoError(t, err)
	update.keys[1].proved = true
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append([]byte("x "+sshkeys.Authorized(k.key)+"\n"), data...), 0o600))
	require.NoError(t, update.Write(t.Context()))
	require.Len(t, keysFor(mustRead(t, file), "x"), 1)
	require.Len(t, keysFor(mustRead(t, file), "[h]:2222"), 2)
}

// The user is asked in ssh's words, three times at most.
func TestUpdateIsConfirmed(t *testing.T) {
	k := newHostKeysOfTest(t)
	resolved := k.config(t, "[h]:2222 {KEY}\n[h]:2222 {CA}\n")
	resolved.FingerprintHash = "MD5"
	update, err := trusting(t, resolved, k, "127.0.0.1").Announced(t.Context(), announcement(k.key, k.other))
	require.NoError(t, err)
	update.keys[1].proved = true
	for answers, want := range map[string]bool{"yes": true, "YES": true, "no": false, "y|yes": true, "x|x|x|yes": false, "": false} {
		asked := &asker.Script{Answers: strings.Split(answers, "|")}
		require.Equal(t, want, update.Confirm(t.Context(), asked), answers)
		require.Regexp(t, "^The server has updated its host keys.\nThese changes were verified by the server's existing trusted key.\n"+
			"Learned new hostkey: ED25519 MD5:[0-9a-f:]{47}\nDeprecating obsolete hostkey: ED25519 MD5:[0-9a-f:]{47}\n", asked.AllNotices())
	}
	require.False(t, update.Confirm(t.Context(), &asker.Script{}))
}

// Fingerprints and pictures are ssh-keygen's.
func TestFingerprintsEqualSSHKeygen(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"-t", "ed25519"}, {"-t", "rsa", "-b", "2048"}, {"-t", "ecdsa", "-b", "384"}} {
		file := sshkeys.Keygen(t, dir, strings.Join(args, ""), args...) + ".pub"
		key := sshkeys.Parse(t, sshkeys.PublicLine(t, file))
		for _, hash := range []string{"SHA256", "MD5"} {
			out, err := exec.Command(env.Tool(t, "ssh-keygen"), "-l", "-v", "-E", hash, "-f", file).Output()
			require.NoError(t, err)
			line, art, _ := strings.Cut(string(out), "\n")
			require.Equal(t, strings.Fields(line)[1], fingerprint(key, hash))
			require.Equal(t, strings.TrimRight(art, "\n"), randomArt(key, hash))
		}
	}
}
