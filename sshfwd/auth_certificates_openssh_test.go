package sshfwd

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// addCertificates adds to the ring: an expired certificate beside old, one beside rsa, one
// for k2 beside k1, one without .pub in its name beside bare, a host's beside host, and one beside pem,
// which has no public file.
func (r *keyRing) addCertificates(t *testing.T) {
	t.Helper()
	for _, name := range []string{"old", "bare", "host"} {
		sshkeys.Keygen(t, r.dir, name, "-t", "ed25519")
	}
	sshkeys.Keygen(t, r.dir, "pem", "-t", "rsa", "-b", "2048", "-m", "PEM")
	for _, args := range []string{"old -V 20200101:20200102", "rsa", "k2", "bare", "host -h", "pem"} {
		words := strings.Fields(args)
		args := append([]string{"-q", "-s", r.path("ca"), "-I", words[0], "-n", "root"}, words[1:]...)
		out, err := exec.Command("ssh-keygen", append(args, r.path(words[0]+".pub"))...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	require.NoError(t, os.Rename(r.path("k2-cert.pub"), r.path("k1-cert.pub")))
	require.NoError(t, os.Rename(r.path("bare-cert.pub"), r.path("bare-cert")))
	require.NoError(t, os.Remove(r.path("pem.pub")))
}

// algorithmsTested are the algorithms under which a server was asked about keys that it
// accepts.
func algorithmsTested(log string) (algorithms []string) {
	for _, m := range regexp.MustCompile(`(?m)publickey test pkalg (\S+) pkblob`).FindAllStringSubmatch(log, -1) {
		algorithms = append(algorithms, m[1])
	}
	return algorithms
}

// A certificateCase is a configuration with certificates, with which ssh and a Client must
// offer the same, and log in or not alike.
type certificateCase struct {
	agent, files, certs string
	only                bool
	authorized          string
	options             string
	twice               bool // AuthenticationMethods publickey,publickey
	in                  bool // ssh logs in
}

var certificateCases = []certificateCase{
	{files: "k4", authorized: "k4", in: true},                    // the key comes first
	{files: "k4", authorized: "k4", twice: true},                 // sshd takes a key and its certificate for one
	{files: "k4 k0", authorized: "k0", twice: true, in: true},    // a certificate, then a key
	{files: "k0 k1", authorized: "k0 k1", twice: true, in: true}, // two keys
	{files: "k0 k1 k2", authorized: "k1 k2", twice: true, in: true},
	{files: "k0 k1 k2 k3", authorized: "k0 k2", twice: true, in: true},
	{files: "k0 k1", authorized: "k0", twice: true},
	{agent: "k2 k4 k0", authorized: "k0", twice: true, in: true},
	{agent: "k0", files: "k1", certs: "cert0 cert3", authorized: "k1", twice: true, in: true},
	{agent: "k0", files: "k3", certs: "cert0 cert3", twice: true, in: true}, // two certificates

	{agent: "k4", files: "k4-cert.pub", in: true},             // -i of a certificate, its key in the agent
	{agent: "k4", files: "k4-cert.pub", only: true, in: true}, // ssh-add has given the agent the certificate, too
	{agent: "k3", files: "cert3", only: true},
	{files: "k4-cert.pub"},        // no key
	{files: "cert3 k3", in: true}, // the key is another IdentityFile
	{files: "k0 cert3 k3", authorized: "k3", in: true},
	{agent: "k3", files: "k3.pub cert3", only: true, in: true},
	{agent: "k3 k0", files: "k3.pub", certs: "cert3", only: true, in: true},
	{agent: "k3", certs: "cert3", only: true}, // IdentitiesOnly: the agent's key is not used for it
	{files: "k3", certs: "cert3", authorized: "k3", in: true},
	{files: "k4", certs: "k4-cert", in: true}, // as of an IdentityFile, .pub is added
	{files: "bare", in: true},
	{files: "pem", in: true},
	{files: "host", authorized: "host", in: true},              // a host's certificate is none of a user's
	{files: "k0", certs: "k0.pub", authorized: "k0", in: true}, // no certificate
	{files: "k1", authorized: "k1", in: true},                  // another key's certificate is beside it

	{files: "old", authorized: "old", in: true},
	{files: "old"},
	{files: "k0 old", certs: "old-cert.pub", authorized: "old", in: true}, // expired, so the plain key
	{agent: "old k4", files: "k4", only: true, in: true},

	{files: "rsa", authorized: "rsa", in: true},
	{files: "rsa", options: "PubkeyAcceptedAlgorithms rsa-sha2-256-cert-v01@openssh.com,rsa-sha2-512", authorized: "rsa", in: true},
	{files: "rsa", options: "PubkeyAcceptedAlgorithms rsa-sha2-256-cert-v01@openssh.com", authorized: "rsa", in: true},
	{files: "rsa", options: "PubkeyAcceptedAlgorithms rsa-sha2-256,rsa-sha2-512", authorized: "rsa", in: true},
	{agent: "rsa", options: "PubkeyAcceptedAlgorithms rsa-sha2-256,rsa-sha2-256-cert-v01@openssh.com", authorized: "rsa", in: true},
	{files: "rsa", options: "PubkeyAcceptedAlgorithms ssh-rsa,ssh-ed25519", authorized: "rsa"},
	{files: "rsa k0", options: "PubkeyAcceptedAlgorithms ssh-ed25519", authorized: "rsa k0", in: true},
	{agent: "rsa k4", options: "PubkeyAcceptedAlgorithms -*cert*", authorized: "k4", in: true},
	{files: "k4", options: "PubkeyAcceptedAlgorithms ssh-ed25519-cert-v01@openssh.com", authorized: "k4", in: true},
}

func TestCertificatesAreOpenSSHs(t *testing.T) {
	t.Parallel()
	ring := newKeyRing(t)
	ring.addCertificates(t)
	start := func(options ...string) *sshd.Server {
		return sshd.Start(t, sshd.Config{Options: append(options, "LogLevel DEBUG1", "MaxAuthTries 20",
			"TrustedUserCAKeys "+ring.path("ca.pub"), "AuthorizedKeysFile "+ring.path("authorized"))})
	}
	once, twice := start(), start("AuthenticationMethods publickey,publickey")
	for i, c := range certificateCases {
		t.Run(fmt.Sprintf("%02d %+v", i, c), func(t *testing.T) {
			var authorized strings.Builder
			for _, name := range strings.Fields(c.authorized) {
				fmt.Fprintln(&authorized, sshkeys.PublicLine(t, ring.path(name+".pub")))
			}
			require.NoError(t, os.WriteFile(ring.path("authorized"), []byte(authorized.String()), 0o644))
			srv, socket := once, "none"
			if c.twice {
				srv = twice
			}
			if c.agent != "" {
				socket = startUnlockedAgent(t, ring.paths(c.agent)...)
			}
			file := orderConfig(t, srv, socket, c.only, c.options, ring.paths(c.files), ring.paths(c.certs))
			before := len(srv.Log())
			theirs, in := offeredTo(t, srv, func() bool {
				return exec.Command("ssh", "-F", file, "-o", "BatchMode=yes", "host", "true").Run() == nil
			})
			between := len(srv.Log())
			require.Equal(t, c.in, in, "ssh")
			ours, in := offeredTo(t, srv, func() bool {
				resolved, err := config.Resolve(t.Context(), config.To("host", "-F", file).Batch())
				require.NoError(t, err)
				client, err := Dial(dialContext(t), resolved, DialOptions{Log: env.QuietLog()})
				if err == nil {
					require.NoError(t, client.Close())
				}
				return err == nil
			})
			require.Equal(t, c.in, in, "we: %v beside %v", ours, theirs)
			require.Equal(t, theirs, ours)
			if c.options != "" {
				log := srv.Log()
				require.Equal(t, algorithmsTested(log[before:between]), algorithmsTested(log[between:]))
			}
		})
	}
}

// A certificate beside a key's file whose public half is not known fits by its name, as in
// ssh. The passphrase is asked for once.
func TestCertificateBesideALockedKey(t *testing.T) {
	t.Parallel()
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	ca := sshkeys.Keygen(t, dir, "ca", "-t", "ed25519")
	key := sshkeys.Keygen(t, dir, "pem", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "sesame")
	out, err := exec.Command("ssh-keygen", "-q", "-s", ca, "-I", "pem", "-n", "root", key+".pub").CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.Remove(key+".pub"))
	srv := sshd.Start(t, sshd.Config{Options: []string{"TrustedUserCAKeys " + ca + ".pub", "AuthorizedKeysFile none"}})
	user := &asker.Script{Answers: []string{"sesame"}}
	requireLogin(t, authConfig(t, srv, []string{key}), user)
	require.Equal(t, "Enter passphrase for key '"+key+"': ", user.AllAsked())
}
