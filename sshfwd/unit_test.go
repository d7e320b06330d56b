package sshfwd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/sshtest"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext": "plain\n\ttext",
		"a\r\nb\rc":     `a` + "\n" + `b\x0dc`,
		"\x1b[31mred":   `\x1b[31mred`,
		"\u009b31m":     `\xc2\x9b31m`,
		"é 日本":          "é 日本",
		"bad\xff\xfe":   `bad\xff\xfe`,
		"a\u202eb":      `a\xe2\x80\xaeb`,
		"\x00\x7f":      `\x00\x7f`,
		"\ufffd":        "\ufffd",
	} {
		require.Equal(t, want, Printable(in))
	}
	require.Equal(t, `a\x0ab\x09c`, printableLine("a\nb\tc"))
}

func TestMatchPatternList(t *testing.T) {
	for _, c := range []struct {
		name, list string
		want       bool
	}{
		{"a.b", "a.b", true}, {"a.b", "A.B", true}, {"a.b", "a.c", false}, {"a.b", "*", true}, {"a.b", "a.?", true},
		{"a.b", "a?.b", false}, {"a.b", "x,a.b", true}, {"a.b", "*,!a.b", false}, {"a.b", "!a.b,*", false},
		{"a.b", "!c", false}, {"a.b", "", false}, {"a.b", "*.b,", true}, {"aab", "*ab", true}, {"", "*", true}, {"", "?", false},
		{"[h]:22", "[h]:22", true}, {"[h]:22", "h", false}, {"a", strings.Repeat("*", 2000), false},
		{strings.Repeat("a", 60), strings.Repeat("a*", 60) + "b", false}, // in no exponential time
	} {
		require.Equal(t, c.want, matchPatternList(c.name, c.list), "%q in %q", c.name, c.list)
	}
}

// Every process that adds a host at once leaves a whole line, and the same line
// is there once.
func TestAppendKnownHostAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "known_hosts")
	same := newKey(t)
	var wg sync.WaitGroup
	errs := make([]error, 16)
	keys := make([]ssh.PublicKey, 16)
	for i := range 16 {
		keys[i] = newKey(t)
		wg.Go(func() {
			errs[i] = errors.Join(
				appendKnownHost(t.Context(), file, "same", same, i%2 == 0),
				appendKnownHost(t.Context(), file, fmt.Sprint("host", i), keys[i], false))
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	lines, unreadable := readKnownHosts([]string{file})
	require.Empty(t, unreadable)
	require.Len(t, lines, 17)
	require.Len(t, keysFor(lines, "same"), 1)
	for i := range 16 {
		v, _ := check(keysFor(lines, fmt.Sprint("host", i)), keys[i])
		require.Equal(t, hostKnown, v)
	}
}

func TestAppendKnownHostToAnOpenLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(file, []byte("# no line end"), 0o600))
	require.NoError(t, appendKnownHost(t.Context(), file, "h", newKey(t), false))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "# no line end\nh ssh-ed25519 "))
	for _, name := range []string{"a b", "a,b", "*", "!a", "|1|x", "#", "@revoked", "a\nb"} {
		require.Error(t, appendKnownHost(t.Context(), file, name, newKey(t), false), name)
	}
}

// A rekey may not bring another key, and asks nothing.
func TestHostKeyPolicyOnRekey(t *testing.T) {
	c := &Config{
		Hostname: "h", Port: 22, StrictHostKeyChecking: StrictAsk,
		UserKnownHostsFiles: []string{filepath.Join(t.TempDir(), "kh")},
	}
	policy := newHostKeyPolicy(t.Context(), c, &script{answers: []string{"yes"}}, quietLog())
	key := newKey(t)
	require.NoError(t, policy.check("", tcpAddr(22), key))
	require.NoError(t, policy.check("", tcpAddr(22), key))
	var refused *HostKeyError
	require.ErrorAs(t, policy.check("", tcpAddr(22), newKey(t)), &refused)
	require.Equal(t, KeyChanged, refused.Reason)
}

func TestHostKeyOrder(t *testing.T) {
	all := splitCommas(fallbackDefaults().get("hostkeyalgorithms"))
	rsaLine := func(marker string) []knownHostsLine {
		signer, err := ssh.ParsePrivateKey([]byte(readKey(t, "-t", "rsa", "-b", "2048")))
		require.NoError(t, err)
		l, ok := parseKnownHostsLine(marker + "h " + string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
		require.True(t, ok)
		return []knownHostsLine{l}
	}
	c := &Config{Hostname: "h", Port: 22}
	require.Equal(t, all, newHostKeys(c, nil).order(all))
	order := newHostKeys(c, rsaLine("")).order(all)
	require.Len(t, order, len(all))
	require.Equal(t, []string{
		"rsa-sha2-512-cert-v01@openssh.com", "rsa-sha2-256-cert-v01@openssh.com", "rsa-sha2-512", "rsa-sha2-256",
	}, order[:4])
	order = newHostKeys(c, rsaLine("@cert-authority ")).order(all)
	require.Len(t, order, len(all))
	require.Equal(t, all[:8], order[:8]) // all the certificates
}

func readKey(t *testing.T, args ...string) string {
	t.Helper()
	data, err := os.ReadFile(keygen(t, t.TempDir(), "key", args...))
	require.NoError(t, err)
	return string(data)
}

// keepaliveClient is a Client in a bubble of virtual time, over an in-memory
// link; until dead is set, the server answers.
func keepaliveClient(t *testing.T, dead *atomic.Bool) *Client {
	t.Helper()
	hostKey, err := sshtest.NewSigner()
	require.NoError(t, err)
	server := &ssh.ServerConfig{NoClientAuth: true}
	server.AddHostKey(hostKey)
	left, right := newBufferedPipe()
	go func() {
		_, channels, requests, err := ssh.NewServerConn(right, server)
		if err != nil {
			return
		}
		go func() {
			for range channels {
			}
		}()
		for req := range requests {
			if req.WantReply && !dead.Load() {
				_ = req.Reply(false, nil)
			}
		}
	}()
	conn, channels, requests, err := ssh.NewClientConn(left, "x", &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(hostKey.PublicKey())})
	require.NoError(t, err)
	return newClient(ssh.NewClient(conn, channels, requests), quietLog())
}

func TestKeepaliveEndsADeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		client := keepaliveClient(t, &dead)
		client.startKeepalive(15*time.Second, 3, func() uint64 { return 0 })
		time.Sleep(time.Hour)
		dead.Store(true)
		start := time.Now()
		err := client.Wait()
		require.ErrorIs(t, err, ErrNoAnswer)
		var lost *LostError
		require.ErrorAs(t, err, &lost)
		require.LessOrEqual(t, time.Since(start), 60*time.Second)
		require.GreaterOrEqual(t, time.Since(start), 45*time.Second)
		_ = client.Close()
	})
}

func TestKeepaliveTakesTrafficForLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		var received atomic.Uint64
		client := keepaliveClient(t, &dead)
		dead.Store(true)
		client.startKeepalive(15*time.Second, 3, func() uint64 { return received.Add(1) })
		time.Sleep(time.Hour)
		require.NoError(t, client.Close()) // and it does not wait for an answer
		require.NoError(t, client.Wait())
	})
}

// Something that arrives now and then is enough.
func TestKeepaliveForgetsMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		var looks atomic.Uint64
		client := keepaliveClient(t, &dead)
		dead.Store(true)
		client.startKeepalive(15*time.Second, 2, func() uint64 { return looks.Add(1) / 2 })
		time.Sleep(time.Hour)
		require.NoError(t, client.Close())
		require.NoError(t, client.Wait())
	})
}

func TestKeepaliveOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		client := keepaliveClient(t, &dead)
		dead.Store(true)
		client.startKeepalive(0, 3, nil)
		time.Sleep(time.Hour)
		require.NoError(t, client.Close())
		client = keepaliveClient(t, &dead)
		client.startKeepalive(time.Second, 0, func() uint64 { return 0 })
		time.Sleep(time.Hour)
		require.NoError(t, client.Close())
	})
}

// newBufferedPipe is net.Pipe with a buffer: both ends of SSH begin by writing.
func newBufferedPipe() (net.Conn, net.Conn) {
	a, b := newHalf(), newHalf()
	return &pipeEnd{in: a, out: b}, &pipeEnd{in: b, out: a}
}

type half struct {
	mu     sync.Mutex
	cond   *sync.Cond
	data   []byte
	closed bool
}

func newHalf() *half {
	h := &half{}
	h.cond = sync.NewCond(&h.mu)
	return h
}

func (h *half) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.cond.Broadcast()
}

type pipeEnd struct {
	net.Conn
	in, out *half
}

func (p *pipeEnd) Read(b []byte) (int, error) {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	for len(p.in.data) == 0 {
		if p.in.closed {
			return 0, net.ErrClosed
		}
		p.in.cond.Wait()
	}
	n := copy(b, p.in.data)
	p.in.data = p.in.data[n:]
	return n, nil
}

func (p *pipeEnd) Write(b []byte) (int, error) {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if p.out.closed {
		return 0, net.ErrClosed
	}
	p.out.data = append(p.out.data, b...)
	p.out.cond.Broadcast()
	return len(b), nil
}

func (p *pipeEnd) Close() error {
	p.in.close()
	p.out.close()
	return nil
}

func (p *pipeEnd) RemoteAddr() net.Addr { return tcpAddr(22) }
func (p *pipeEnd) LocalAddr() net.Addr  { return tcpAddr(23) }

func TestErrorsHaveHints(t *testing.T) {
	for _, err := range []interface {
		error
		Hint() string
	}{
		&ConfigError{Problem: "p", Advice: "a"}, &UnsupportedError{"O", "v"}, &DialError{Host: "h", Port: 1, Err: os.ErrDeadlineExceeded},
		&HandshakeError{Host: "h", Port: 1, Err: ErrNoAnswer}, &AuthError{User: "u", Host: "h"}, &LostError{}, &HostKeyError{},
	} {
		require.NotEmpty(t, err.Hint())
		require.NotContains(t, err.Error()+err.Hint(), "\n")
	}
	require.Equal(t, "cannot connect to h:1: timed out", (&DialError{Host: "h", Port: 1, Err: os.ErrDeadlineExceeded}).Error())
}
