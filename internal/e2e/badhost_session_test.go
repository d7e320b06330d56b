//go:build unix

package e2e

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/fakesshd"
)

// What comes unasked in a connection: the session goes on unharmed, or the
// connection ends with one message.
func TestHostileMessages(t *testing.T) {
	v := newVictim(t)
	evil := v.evil()
	raw := func(messages ...[]byte) func(*fakesshd.Conn) {
		return func(conn *fakesshd.Conn) {
			for _, message := range messages {
				if fakesshd.SendRaw(conn, message) != nil {
					return
				}
			}
		}
	}
	flood := func(n int, message func(i int) []byte) func(*fakesshd.Conn) {
		return func(conn *fakesshd.Conn) {
			for i := range n {
				if fakesshd.SendRaw(conn, message(i)) != nil {
					return
				}
			}
		}
	}
	for name, c := range map[string]struct {
		loggedIn func(*fakesshd.Conn)
		ends     bool
	}{
		"debug messages":            {flood(2000, func(int) []byte { return debugMessage(evil) }), false},
		"ignored messages":          {flood(2000, func(int) []byte { return append([]byte{2, 0, 0, 0, 0}, evil...) }), false},
		"global requests":           {flood(5000, func(i int) []byte { return globalMessage(evil, i%2 == 0, evil) }), false},
		"host keys":                 {flood(20, func(int) []byte { return globalMessage("hostkeys-00@openssh.com", false, i32(5)+"EVIL!") }), false},
		"answers to nothing":        {flood(5000, func(i int) []byte { return append([]byte{81 + byte(i%2)}, evil...) }), false},
		"late success of the login": {raw([]byte{52}), true},
		"a banner":                  {raw(bannerMessage(evil)), false}, // package ssh sends none now
		"data of no channel":        {raw([]byte("\x5e" + i32(999) + i32(1) + "x")), true},
		"confirmation of nothing":   {raw([]byte("\x5b" + i32(999) + i32(1) + i32(1) + i32(32768))), true},
		"close of nothing":          {raw([]byte("\x61" + i32(999))), true},
		"unknown message":           {raw([]byte{200, 'E', 'V', 'I', 'L'}), true},
		"half a message":            {raw([]byte{90, 0}), true},
		"disconnect":                {raw(disconnectMessage(evil)), true},
		"long disconnect":           {raw(disconnectMessage(strings.Repeat(evil, 400))), true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := &fakesshd.Server{Faults: fakesshd.Faults{LoggedIn: c.loggedIn}}
			p := v.launch(t, v.meets(t, srv), "-N", "host")
			if !c.ends {
				p.waitFor(t, &p.stderr, serving)
				p.signal(t, 15)
				r := p.wait(t)
				require.Zero(t, r.code, "%q", r.stderr)
				requireClean(t, r.stderr)
				return
			}
			// A connection that was there once is made again: see reconnecting.
			r := p.endsOrReconnects(t)
			requireClean(t, r)
			require.Less(t, len(r), 4000, "%s", r)
			require.Contains(t, r, "gpg-bridge: ")
		})
	}
}

// endsOrReconnects waits until the program has told that the connection is
// lost, and ends it if need be. It returns what was said.
func (p *process) endsOrReconnects(t *testing.T) string {
	t.Helper()
	err := within(patience, func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return strings.Contains(p.stderr.String(), "connecting again")
		}
	})
	if err != nil {
		p.signal(t, syscall.SIGABRT) // for the goroutines
		<-p.ended
		t.Fatalf("it does not end: %s", p.stderr.String())
	}
	select {
	case <-p.ended:
		require.Equal(t, 255, p.wait(t).code)
	default:
		p.signal(t, 15)
	}
	return p.wait(t).stderr
}

func i32(n int) string { return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) }

// How a session ends is the host's to say, and its words are only words.
func TestHostileSessions(t *testing.T) {
	v := newVictim(t)
	evil := v.evil()
	type handler = fakesshd.ChannelHandler
	accepted := func(then func(ssh.Channel)) handler {
		return func(_ *fakesshd.Conn, newCh ssh.NewChannel) {
			ch, reqs, err := newCh.Accept()
			if err != nil {
				return
			}
			defer ch.Close()
			for req := range reqs {
				_ = req.Reply(true, nil)
				if req.Type == "exec" {
					break
				}
			}
			go ssh.DiscardRequests(reqs)
			then(ch)
		}
	}
	request := func(name, payload string) handler {
		return accepted(func(ch ssh.Channel) { _, _ = ch.SendRequest(name, false, []byte(payload)) })
	}
	str := func(s string) string { return i32(len(s)) + s }
	for name, c := range map[string]struct {
		session handler
		text    string
	}{
		"refused": {func(_ *fakesshd.Conn, newCh ssh.NewChannel) { _ = newCh.Reject(ssh.Prohibited, evil) }, `EVIL\x1b]0;owned`},
		"refused at length": {func(_ *fakesshd.Conn, newCh ssh.NewChannel) {
			_ = newCh.Reject(ssh.RejectionReason(77), strings.Repeat(evil, 800))
		}, `EVIL\x1b]0;owned`},
		"signal":                 {request("exit-signal", str(evil)+"\x01"+str(evil)+str(evil)), ""},
		"signal of great length": {request("exit-signal", str(strings.Repeat(evil, 100))+"\x01"+str(evil)+str(evil)), ""},
		"half a signal":          {request("exit-signal", "\x00\x00\x00\xffEVIL"), ""},
		"half a status":          {request("exit-status", "\x00"), ""},
		"requests of any name": {accepted(func(ch ssh.Channel) {
			for range 1000 {
				_, _ = ch.SendRequest(evil, true, []byte(evil))
				_, _ = ch.SendRequest("xon-xoff", false, []byte(evil))
			}
		}), ""},
		"nothing": {accepted(func(ssh.Channel) {}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{"session": c.session}}
			socket := filepath.Join(t.TempDir(), "S")
			r := v.launch(t, v.meets(t, srv), "--remote-socket", socket, "host", "echo").wait(t)
			require.Equal(t, 255, r.code)
			requireClean(t, r.stderr)
			require.Less(t, len(r.stderr), 4000)
			require.Contains(t, r.stderr, c.text)
			require.LessOrEqual(t, strings.Count(r.stderr, "\n"), 2, "%q", r.stderr)
		})
	}
	// What a command prints is the user's, byte by byte.
	t.Run("output", func(t *testing.T) {
		srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{"session": accepted(func(ch ssh.Channel) {
			_, _ = io.WriteString(ch, evil)
			_, _ = io.WriteString(ch.Stderr(), evil)
			_, _ = ch.SendRequest("exit-status", false, []byte{0, 0, 0, 3})
		})}}
		r := v.launch(t, v.meets(t, srv), "--remote-socket", filepath.Join(t.TempDir(), "S"), "host", "echo").wait(t)
		require.Equal(t, 3, r.code)
		require.Equal(t, evil, r.stdout)
		require.Equal(t, evil, r.stderr)
	})
	// Nor does anything that the host answers to a look at its socket.
	t.Run("look", func(t *testing.T) {
		srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{
			"direct-streamlocal@openssh.com": func(_ *fakesshd.Conn, newCh ssh.NewChannel) {
				_ = newCh.Reject(ssh.ConnectionFailed, strings.Repeat(evil, 100))
			},
		}}
		r := v.launch(t, v.meets(t, srv), "-v", "host", "echo on; sleep 0.3").wait(t)
		require.Zero(t, r.code, "%q", r.stderr)
		require.Equal(t, "on\n", r.stdout)
		requireClean(t, r.stderr)
		require.Contains(t, r.stderr, "EVIL")
	})
}

// A report that the host's shell forges, with the marker that it was given.
func TestHostileReports(t *testing.T) {
	v := newVictim(t)
	evil := v.evil()
	line := strings.ReplaceAll(evil, "\n", "")
	long := "/" + strings.Repeat("x", 4096)
	report := func(lines ...string) func(string) string {
		return func(mark string) string {
			var text strings.Builder
			for _, l := range lines {
				text.WriteString(strings.ReplaceAll(l, "@", mark+" ") + "\n")
			}
			return text.String()
		}
	}
	for name, c := range map[string]struct {
		report func(mark string) string
		stderr string
	}{
		"foreign lines":             {report(evil, evil), ""},
		"foreign lines, on stderr":  {report(), strings.Repeat(evil, 1000)},
		"foreign line without end":  {report(strings.Repeat(line, 100_000)), ""},
		"10 MB of foreign lines":    {report(strings.Repeat(evil+"\n", 40_000)), ""},
		"the script":                {report("mark='@'", "printf '%s' @"), ""},
		"socket with controls":      {report("@start", "@ready /tmp/"+line), ""},
		"socket that is relative":   {report("@start", "@ready x/../../etc/passwd"), ""},
		"no socket":                 {report("@start", "@ready "), ""},
		"socket of 4 KiB":           {report("@start", "@ready "+long), ""},
		"socket of 1 KiB":           {report("@start", "@ready "+long[:900]), ""},
		"held, with controls":       {report("@start", "@held /tmp/"+line), ""},
		"held, with C1 and bidi":    {report("@start", "@held /tmp/\u009b31m\u202e'$(touch "+v.canary+")"), ""},
		"self, with controls":       {report("@start", "@self /tmp/"+line), ""},
		"own agent of no process":   {report("@start", "@own -1 /tmp/x"), ""},
		"own agent, huge process":   {report("@start", "@own 99999999999999999999 /tmp/x"), ""},
		"own agent, evil process":   {report("@start", "@own "+line+" /tmp/x"), ""},
		"no gpg, evil":              {report("@start", "@nogpg \u009b31m\u202e"), ""},
		"error, evil reason":        {report("@start", "@error \u009b31m\u202e /tmp/x"), ""},
		"error, evil path":          {report("@start", "@error nodir /\u009b31m\u202e"), ""},
		"unknown word":              {report("@start", "@\u009b31m\u202e x"), ""},
		"version":                   {report("@start", "@version "+line, "@held /tmp/x"), ""},
		"evil version":              {report("@start", "@version 2.\u009b31m", "@held /tmp/x"), ""},
		"key never asked for":       {report("@start", "@missing "+strings.Repeat("A", 40), "@ready /tmp/x"), ""},
		"key with controls":         {report("@start", "@missing "+line), ""},
		"no start":                  {report("@ready /tmp/x"), ""},
		"two starts":                {report("@start", "@start", "@ready /tmp/x"), ""},
		"nothing behind the start":  {report("@start"), ""},
		"marker within a line":      {report("@start", "x @ready /tmp/x"), ""},
		"import before the verdict": {report("@start", "@imported "+v.key.Fingerprint), ""},
	} {
		t.Run(name, func(t *testing.T) {
			shell := hostileShell{report: c.report, stderr: c.stderr}
			srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{"session": shell.serve}}
			addr := v.meets(t, srv)
			if strings.HasPrefix(name, "socket") {
				r := v.launch(t, addr, "-N", "host").wait(t)
				require.Equal(t, 255, r.code, "%q", r.stderr)
				r.requireHinted(t)
			}
			r := v.launch(t, addr, "host", "echo").wait(t)
			require.Equal(t, 7, r.code, "%q", r.stderr)
			require.Equal(t, "on the host\n", r.stdout)
			r.requireHinted(t)
		})
	}
}

// requireHinted is requireOneMessage for any text.
func (r result) requireHinted(t *testing.T) {
	t.Helper()
	requireClean(t, r.stderr)
	require.Less(t, len(r.stderr), 4000, "%q", r.stderr)
	require.Len(t, r.messages(t), 2, "%q", r.stderr)
}

// What gpg says on import is shown escaped, and bounded.
func TestHostileNotes(t *testing.T) {
	v := newVictim(t)
	evil := strings.ReplaceAll(v.evil(), "\n", "")
	socket := filepath.Join(v.dir, "S")
	for name, notes := range map[string]string{
		"evil":  "@note " + evil + "\n",
		"many":  strings.Repeat("@note "+evil+"\n", 3000),
		"hung":  "@hung import 99999999999999999999 \u009b31m\u202e" + strings.Repeat("x", 300) + " /\u009b31m\u202e" + strings.Repeat("y", 300) + "\n",
		"lying": "@imported " + strings.Repeat("B", 40) + "\n@note " + evil + "\n@imported\n",
	} {
		t.Run(name, func(t *testing.T) {
			shell := hostileShell{report: func(mark string) string {
				return strings.ReplaceAll(fmt.Sprintf("@start\n@version 2.4.7\n@ready %s\n@missing %s\n@compared\n%s@done\n", socket, v.key.Fingerprint, notes), "@", mark+" ")
			}}
			srv := &fakesshd.Server{
				StreamLocalBindUnlink: true,
				ChannelHandlers:       map[string]fakesshd.ChannelHandler{"session": shell.serve},
			}
			r := v.launch(t, v.meets(t, srv), "host", "echo").wait(t)
			require.Equal(t, 7, r.code, "%q", r.stderr)
			require.Equal(t, "on the host\n", r.stdout)
			r.requireHinted(t)
			require.Contains(t, r.stderr, "could not be imported")
		})
	}
}
