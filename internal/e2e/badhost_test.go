//go:build unix

package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
)

// A victim is a laptop whose user connects to hosts that mean harm.
type victim struct {
	laptop *gpghome.Home
	key    gpghome.Key
	dir    string // of the user's ssh
	user   ssh.Signer
	canary string // the file that nobody may make
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	t.Parallel()
	v := &victim{laptop: gpghome.ForTest(t), dir: env.ShortDir(t)}
	v.canary = filepath.Join(v.dir, "CANARY")
	var err error
	v.key, err = v.laptop.GenerateKey(t.Context(), gpghome.KeySpec{UserID: userID})
	require.NoError(t, err)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	v.user, err = ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(v.dir, "key"), pem.EncodeToMemory(block), 0o600))
	t.Cleanup(func() { require.NoFileExists(t, v.canary, "something of the host's was executed here") })
	return v
}

// evil is a text that does harm wherever it is not taken for a text.
func (v *victim) evil() string {
	return "EVIL\x1b]0;owned\x07\x1b[31m\u009b31m\x9b31m\r\b\x00\x7f\u202e\u2066\u200f\u2028\u0085\xff" +
		"%s%n';touch " + v.canary + ";$(touch " + v.canary + ")`touch " + v.canary + "`\n\r\ngpg-bridge: forged\r"
}

// knownHosts is the user's file for a server.
func (v *victim) knownHosts(addr string) string {
	return filepath.Join(v.dir, "known"+addr[strings.LastIndex(addr, ":")+1:])
}

// command is gpg-bridge ssh with the user's configuration for a server.
func (v *victim) command(addr string, args ...string) *exec.Cmd {
	host, port, _ := net.SplitHostPort(addr)
	return exec.Command(program, append([]string{
		"ssh", "-F", "none", "-i", filepath.Join(v.dir, "key"), "-p", port,
		"-o", "HostName=" + host, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
		"-o", "UserKnownHostsFile=" + v.knownHosts(addr), "-o", "GlobalKnownHostsFile=/dev/null",
	}, args...)...)
}

func (v *victim) launch(t *testing.T, addr string, args ...string) *process {
	t.Helper()
	return launchAs(t, v.command(addr, args...), v.laptop, nil)
}

// meets starts srv for the victim.
func (v *victim) meets(t *testing.T, srv *fakesshd.Server) string {
	t.Helper()
	srv.AuthorizedKeys = append(srv.AuthorizedKeys, v.user.PublicKey())
	if srv.Env == nil {
		srv.Env = append(gpghome.ForTest(t).Env(), "HOME="+env.ShortDir(t))
	}
	require.NoError(t, srv.Start())
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	host, port, err := net.SplitHostPort(srv.Addr())
	require.NoError(t, err)
	known := "[" + host + "]:" + port + " " + string(ssh.MarshalAuthorizedKey(srv.HostKey.PublicKey()))
	require.NoError(t, os.WriteFile(v.knownHosts(srv.Addr()), []byte(known), 0o600))
	return srv.Addr()
}

// meetsRaw has a server that speaks no further than serve does.
func (v *victim) meetsRaw(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(conn)
				_ = conn.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, conn) // no reset, which would take along what was sent
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// requireClean: what a terminal gets is text, whatever the host has sent.
// "Connection to … closed" has ssh's own CR LF.
func requireClean(t *testing.T, stderr string) {
	t.Helper()
	text := strings.ReplaceAll(stderr, "\r\n", "\n")
	for i, r := range text {
		clean := r == '\n' || r == '\t' || unicode.IsPrint(r)
		if r == utf8.RuneError {
			_, size := utf8.DecodeRuneInString(text[i:])
			clean = size > 1
		}
		if !clean {
			require.FailNow(t, "not clean", "%q at %d of %q", r, i, text)
		}
	}
	for line := range strings.Lines(text) {
		require.False(t, strings.HasPrefix(line, "gpg-bridge: forged"), "%q", text)
	}
}

// requireOneMessage: what is wrong, in ssh's words or ours, in lines that one can read, and
// what to do.
func (r result) requireOneMessage(t *testing.T, text string) {
	t.Helper()
	requireClean(t, r.stderr)
	require.Less(t, len(r.stderr), 4000)
	r.requireRefusal(t, text, "")
}

// packet is a binary packet before the key exchange (RFC 4253 section 6).
func packet(payload []byte) []byte {
	padding := 8 - (len(payload)+5)%8
	if padding < 4 {
		padding += 8
	}
	length := uint32(1 + len(payload) + padding)
	head := []byte{byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length), byte(padding)}
	return append(append(head, payload...), make([]byte, padding)...)
}

// Messages of RFC 4250 section 4.1.2, with texts to choose.
func disconnectMessage(text string) []byte {
	return ssh.Marshal(struct {
		Reason uint32 `sshtype:"1"`
		Text   string
		Tag    string
	}{2, text, text})
}

func debugMessage(text string) []byte {
	return ssh.Marshal(struct {
		Show bool `sshtype:"4"`
		Text string
		Tag  string
	}{true, text, text})
}

func bannerMessage(text string) []byte {
	return ssh.Marshal(struct {
		Text string `sshtype:"53"`
		Tag  string
	}{text, text})
}

func authFailureMessage(methods string) []byte {
	return ssh.Marshal(struct {
		Methods []string `sshtype:"51"`
		Partial bool
	}{[]string{methods}, false})
}

func globalMessage(name string, reply bool, data string) []byte {
	return append(ssh.Marshal(struct {
		Name  string `sshtype:"80"`
		Reply bool
	}{name, reply}), data...)
}

var markerForm = regexp.MustCompile(`gpg-bridge:[0-9a-f]+`)

// A hostileShell answers the program's own commands with a report, which may use
// the script's marker, and the user's "echo" with a greeting and status 7.
type hostileShell struct {
	report func(mark string) string
	stderr string
}

func (h hostileShell) serve(_ *fakesshd.Conn, newCh ssh.NewChannel) {
	ch, reqs, err := newCh.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	for req := range reqs {
		if req.Type != "exec" {
			_ = req.Reply(false, nil)
			continue
		}
		_ = req.Reply(true, nil)
		go ssh.DiscardRequests(reqs)
		status := uint32(7)
		if command := string(req.Payload[4:]); command == "echo" {
			_, _ = io.WriteString(ch, "on the host\n")
		} else {
			status = 0
			_, _ = io.WriteString(ch.Stderr(), h.stderr)
			_, _ = io.WriteString(ch, h.report(findMarker(command, ch)))
		}
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

// findMarker looks into the command, and then into what comes on its input.
func findMarker(command string, stdin io.Reader) string {
	script, buf := []byte(command), make([]byte, 4096)
	for markerForm.Find(script) == nil {
		n, err := stdin.Read(buf)
		script = append(script, buf[:n]...)
		if err != nil {
			break
		}
	}
	return string(markerForm.Find(script))
}
