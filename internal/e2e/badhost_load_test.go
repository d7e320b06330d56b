//go:build unix

package e2e

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/fakesshd"
)

// peakRSS is the most memory that a running process has had so far, in bytes
// (proc(5), VmHWM). 0 where the system does not tell. What wait4 tells counts
// the memory of the test that started it, too.
func peakRSS(t *testing.T, p *process) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// What the program may take of memory, in bytes, for a host that wants it to
// take more: 25 KiB for each channel of sshfwd.DefaultMaxConns; a few packets
// for banners; and twice what sshfwd lets a host fill, which is how late the
// garbage collector may notice. The race detector takes up to raceMemory times
// that.
const (
	raceMemory = 6

	channelsRSS = 128 << 20
	bannersRSS  = 100 << 20
	hoardRSS    = 600 << 20
)

// bulk is the options of a connection that carries much: package chacha20 has no assembly where
// it is compiled for the race detector, and takes 20 s for what is sent here.
func bulk(args ...string) []string {
	return append([]string{"-o", "Ciphers=aes128-gcm@openssh.com"}, args...)
}

// watchRSS follows a process to its end; what it returns waits for that.
func watchRSS(t *testing.T, p *process) (peak func() int64) {
	t.Helper()
	last := int64(0)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-p.ended:
				return
			case <-time.After(tick):
				last = max(last, peakRSS(t, p))
			}
		}
	}()
	return func() int64 { <-watched; return last }
}

func requireRSS(t *testing.T, rss int64, limit int64) {
	t.Helper()
	if raceDetector {
		limit *= raceMemory
	}
	t.Logf("RSS %d MiB, and it may be %d", rss>>20, limit>>20)
	require.Less(t, rss, limit)
}

// badChannels are opened by hosts that have no business with them.
func badChannels(v *victim, path string) map[string][]byte {
	str := func(s string) string { return i32(len(s)) + s }
	tcp := str("127.0.0.1") + i32(22) + str(v.evil()) + i32(1)
	return map[string][]byte{
		"session":                           nil,
		"direct-tcpip":                      []byte(tcp),
		"forwarded-tcpip":                   []byte(tcp),
		"x11":                               []byte(str("127.0.0.1") + i32(6000)),
		"auth-agent@openssh.com":            nil,
		"tun@openssh.com":                   []byte(i32(1) + i32(0)),
		"direct-streamlocal@openssh.com":    []byte(str(path) + str("") + i32(0)),
		v.evil():                            []byte(v.evil()),
		"":                                  nil,
		"forwarded-streamlocal@openssh.com": []byte(str(path+"/../"+v.evil()) + str("")),
	}
}

// TestHostileChannels: nothing but channels for the forwarded path is served,
// whatever else there is at the same time, and however much of it.
func TestHostileChannels(t *testing.T) {
	v := newVictim(t)
	logins := make(chan *fakesshd.Conn, 1)
	srv := &fakesshd.Server{Faults: fakesshd.Faults{LoggedIn: func(conn *fakesshd.Conn) { logins <- conn }}}
	p := v.launch(t, v.meets(t, srv), bulk("-N", "host")...)
	p.waitFor(t, &p.stderr, serving)
	conn := <-logins
	path := strings.TrimSuffix(strings.TrimPrefix(p.stderr.String(), serving), "\n")
	before := peakRSS(t, p)

	// 1. Types and paths that nobody has asked for.
	for kind, extra := range badChannels(v, path) {
		_, _, err := conn.OpenChannel(kind, extra)
		var refused *ssh.OpenChannelError
		require.ErrorAs(t, err, &refused, "%q", kind)
	}
	for _, other := range []string{"", path + "\x00", path + "/", "/", path[1:], strings.Repeat("/x", 100_000)} {
		_, err := conn.OpenForwarded(other)
		require.Error(t, err, "%.100q", other)
	}

	// 2. 10,000 at once, of the path and of none, while sessions are served.
	good := greeted(t, conn, path)
	var opening sync.WaitGroup
	work := make(chan int)
	var mu sync.Mutex
	var accepted []ssh.Channel
	refused := 0
	for range 64 {
		opening.Go(func() {
			for i := range work {
				kind, extra := "forwarded-streamlocal@openssh.com", ssh.Marshal(struct{ Path, Reserved string }{path, ""})
				if i%2 == 0 {
					kind, extra = "x11", []byte(strings.Repeat("x", 30_000))
				}
				ch, reqs, err := conn.OpenChannel(kind, extra)
				mu.Lock()
				if err != nil {
					refused++
				} else {
					go ssh.DiscardRequests(reqs)
					accepted = append(accepted, ch)
				}
				mu.Unlock()
			}
		})
	}
	for i := range 10_000 {
		work <- i
		if i%1000 == 0 {
			good.alive(t)
		}
	}
	close(work)
	opening.Wait()
	good.alive(t)
	held := peakRSS(t, p)
	t.Logf("%d channels accepted, %d refused; RSS %d MiB before", len(accepted), refused, before>>20)
	require.GreaterOrEqual(t, refused, 5000)
	requireRSS(t, held, channelsRSS)

	// 3. When they have gone, others are served as before.
	for _, ch := range accepted {
		_ = ch.Close()
	}
	eventually(t, func() bool {
		ch, err := conn.OpenForwarded(path)
		if err != nil {
			return false
		}
		defer ch.Close()
		line, err := bufio.NewReader(ch).ReadString('\n')
		return err == nil && strings.HasPrefix(line, "OK ")
	}, "no session is served any more")
	good.alive(t)
	p.signal(t, 15)
	r := p.wait(t)
	require.Zero(t, r.code)
	requireClean(t, r.stderr)
}

// A good session of a host that does bad things as well.
type goodSession struct {
	ch   ssh.Channel
	read *bufio.Reader
}

func greeted(t *testing.T, conn *fakesshd.Conn, path string) goodSession {
	t.Helper()
	ch, err := conn.OpenForwarded(path)
	require.NoError(t, err)
	s := goodSession{ch, bufio.NewReader(ch)}
	line, err := s.read.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "OK Pleased to meet you")
	return s
}

func (s goodSession) alive(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(s.ch, "GETINFO restricted\n")
	require.NoError(t, err)
	line, err := s.read.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "OK\n", line)
}

// TestHostileBanners: ten megabytes of them are read, a part is shown, nothing
// is kept.
func TestHostileBanners(t *testing.T) {
	v := newVictim(t)
	banner := bannerMessage(strings.Repeat("be \x1b[31mwelcome\n", 6000))
	srv := &fakesshd.Server{Faults: fakesshd.Faults{KeyOffered: func(conn ssh.ConnMetadata) error {
		for range 10 << 20 / len(banner) {
			if err := fakesshd.SendRaw(conn, banner); err != nil {
				return err
			}
		}
		return nil
	}}}
	p := v.launch(t, v.meets(t, srv), bulk("--remote-socket", filepath.Join(t.TempDir(), "S"), "host", "echo on; sleep 0.2")...)
	peak := watchRSS(t, p)
	ended := p.wait(t)
	require.Zero(t, ended.code, "%.1000q", ended.stderr)
	require.Equal(t, "on\n", ended.stdout)
	require.Contains(t, ended.stderr, "be \\x1b[31mwelcome\n")
	require.Less(t, len(ended.stderr), 4*65536)
	requireClean(t, ended.stderr)
	requireRSS(t, peak(), bannersRSS)
}

// TestHostileHoard: a host that fills the windows of all its channels is given
// up, with one message, and not connected to again.
func TestHostileHoard(t *testing.T) {
	v := newVictim(t)
	// Behind as many sessions as are served at once, the others wait unread.
	fill := func(conn *fakesshd.Conn, path string) {
		data := make([]byte, 32<<10)
		for i := range 256 + 200 {
			ch, err := conn.OpenForwarded(path)
			if err == nil && i >= 256 {
				go func() {
					for err == nil {
						_, err = ch.Write(data)
					}
				}()
			}
		}
	}
	for name, args := range map[string][]string{"forward": {"-N", "host"}, "session": {"host", "sleep 30"}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "S")
			srv := &fakesshd.Server{Faults: fakesshd.Faults{BeforeGrant: func(conn *fakesshd.Conn, path string) { go fill(conn, path) }}}
			p := v.launch(t, v.meets(t, srv), bulk(append([]string{"--remote-socket", path}, args...)...)...)
			peak := watchRSS(t, p)
			r := p.wait(t)
			require.Equal(t, 255, r.code, "%q", r.stderr)
			requireClean(t, r.stderr)
			require.Contains(t, r.stderr, "gpg-bridge: connection lost: given up, because the server sends without end")
			require.Contains(t, r.stderr, "means harm")
			requireRSS(t, peak(), hoardRSS)
		})
	}
}
