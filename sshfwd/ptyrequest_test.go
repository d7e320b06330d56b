package sshfwd

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/terminal"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/sshfwd/config"
)

// A scriptedSession handles all sessions of a server: it records the requests, one line for
// each, and grants those that grant selects. A command that was granted ends at once, with
// status 0.
type scriptedSession struct {
	grant func(request string) bool

	mu   sync.Mutex
	seen []string
	more chan struct{} // one place
}

func newScripted(grant func(string) bool) (*scriptedSession, *fakesshd.Server) {
	s := &scriptedSession{grant: grant, more: make(chan struct{}, 1)}
	return s, &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{"session": s.serve}}
}

func (s *scriptedSession) serve(_ *fakesshd.Conn, newCh ssh.NewChannel) {
	ch, reqs, err := newCh.Accept()
	if err != nil {
		return
	}
	for req := range reqs {
		s.note(req.Type)
		granted := s.grant(req.Type)
		if req.WantReply {
			_ = req.Reply(granted, nil)
		}
		if granted && (req.Type == "shell" || req.Type == "exec") {
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
			_ = ch.Close()
		}
	}
}

func (s *scriptedSession) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, line)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *scriptedSession) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, " ")
}

func all(string) bool { return true }

func noPTY(request string) bool { return request != "pty-req" }

// A ptyCaller records what a Session reports about its terminal.
type ptyCaller struct{ started, refused int }

func (c *ptyCaller) request(refusal error) SessionRequest {
	pty := testPTY
	return SessionRequest{
		PTY: &pty, Env: []config.EnvVar{{Name: "A", Value: "b"}},
		Started:    func() { c.started++ },
		PTYRefused: func() error { c.refused++; return refusal },
	}
}

func TestPTYRefused(t *testing.T) {
	over := errors.New("over")
	for _, test := range []struct {
		name     string
		grant    func(string) bool
		refusal  error
		caller   ptyCaller
		requests string
	}{
		{"granted", all, over, ptyCaller{started: 1}, "pty-req env shell"},
		{"refused and borne", noPTY, nil, ptyCaller{refused: 1}, "pty-req env shell"},
		{"refused and not borne", noPTY, over, ptyCaller{refused: 1}, "pty-req"},
	} {
		t.Run(test.name, func(t *testing.T) {
			script, srv := newScripted(test.grant)
			client := embedded(t, srv)
			var caller ptyCaller
			status, err := client.Session(testContext(t), caller.request(test.refusal))
			require.Equal(t, test.caller, caller)
			require.Equal(t, test.requests, script.requests())
			if caller.refused > 0 && test.refusal != nil {
				require.ErrorIs(t, err, over)
				require.Equal(t, ExitConnectionLost, status)
				return
			}
			require.NoError(t, err)
			require.Zero(t, status)
		})
	}
}

// A refused shell is noticed after a refused terminal, too.
func TestPTYAndShellRefused(t *testing.T) {
	_, srv := newScripted(func(string) bool { return false })
	client := embedded(t, srv)
	var caller ptyCaller
	_, err := client.Session(testContext(t), caller.request(nil))
	var refused *RequestRefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, ptyCaller{refused: 1}, caller)
}

func TestPTYAndAServerThatIsSilent(t *testing.T) {
	asked := make(chan struct{})
	srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{
		"session": func(_ *fakesshd.Conn, newCh ssh.NewChannel) {
			_, reqs, err := newCh.Accept()
			if err != nil {
				return
			}
			for req := range reqs {
				if req.Type == "pty-req" {
					close(asked)
				}
			}
		},
	}}
	client := embedded(t, srv)
	ctx, cancel := context.WithCancelCause(testContext(t))
	over := errors.New("over")
	go func() {
		<-asked
		cancel(over)
	}()
	var caller ptyCaller
	_, err := client.Session(ctx, caller.request(nil))
	require.ErrorIs(t, err, over)
}

// The terminal is asked for ahead, before Session is called, and only then.
func TestPTYAskedForAhead(t *testing.T) {
	for name, test := range map[string]struct {
		grant  func(string) bool
		caller ptyCaller
	}{
		"granted": {all, ptyCaller{started: 1}},
		"refused": {noPTY, ptyCaller{refused: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			script, srv := newScripted(test.grant)
			client := embedded(t, srv)
			pty := testPTY
			client.OpenAhead()
			client.AskPTYAhead(&pty)
			require.NoError(t, client.Run(testContext(t), "true", nil, nil, nil))
			script.awaitBoth(t, "exec", "pty-req")
			var caller ptyCaller
			request := caller.request(nil)
			_, err := client.Session(testContext(t), request)
			require.NoError(t, err)
			require.Equal(t, test.caller, caller)
			require.True(t, strings.HasSuffix(script.requests(), " env shell"), script.requests())
			require.Equal(t, 1, strings.Count(script.requests(), "pty-req"))
		})
	}
}

// awaitBoth waits for two requests on two channels.
func (s *scriptedSession) awaitBoth(t *testing.T, a, b string) {
	t.Helper()
	for ctx := testContext(t); ; {
		if got := s.requests(); got == a+" "+b || got == b+" "+a {
			return
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			require.FailNow(t, "not requested", s.requests())
		}
	}
}

// If the window has changed since, its new size is sent; a session without a terminal gets
// a channel without one.
func TestPTYAskedForAheadAndNowOtherwise(t *testing.T) {
	for name, test := range map[string]struct {
		pty      *terminal.PTY
		requests string
	}{
		"another size": {&terminal.PTY{Term: testPTY.Term, WindowSize: terminal.WindowSize{Cols: 50, Rows: 20}}, " window-change shell"},
		"none":         {nil, " shell"},
	} {
		t.Run(name, func(t *testing.T) {
			script, srv := newScripted(all)
			client := embedded(t, srv)
			pty := testPTY
			client.OpenAhead()
			client.AskPTYAhead(&pty)
			require.NoError(t, client.Run(testContext(t), "true", nil, nil, nil))
			script.awaitBoth(t, "exec", "pty-req")
			before := script.requests()
			_, err := client.Session(testContext(t), SessionRequest{PTY: test.pty, PTYRefused: func() error { return nil }})
			require.NoError(t, err)
			require.Equal(t, before+test.requests, script.requests())
		})
	}
}

// Without a Run, the Session asks for the terminal itself.
func TestPTYAskedForAheadWithoutARun(t *testing.T) {
	script, srv := newScripted(all)
	client := embedded(t, srv)
	pty := testPTY
	client.AskPTYAhead(&pty) // before OpenAhead it is nothing
	client.OpenAhead()
	client.AskPTYAhead(&pty)
	var caller ptyCaller
	_, err := client.Session(testContext(t), caller.request(nil))
	require.NoError(t, err)
	require.Equal(t, "pty-req env shell", script.requests())
}

// If the server grants one session only, a Run's command gets no terminal.
func TestPTYAskedForAheadIsNotTheRuns(t *testing.T) {
	client := realLink(t, "MaxSessions 1")
	pty := testPTY
	client.OpenAhead()
	client.AskPTYAhead(&pty)
	for range 2 {
		var out bytes.Buffer
		require.NoError(t, client.Run(testContext(t), "test -t 0 || echo no terminal", nil, &out, nil))
		require.Equal(t, "no terminal\n", out.String())
	}
	var out bytes.Buffer
	_, err := client.Session(testContext(t), SessionRequest{
		Command: "test -t 0 && echo terminal", PTY: &pty, Stdout: &out, PTYRefused: func() error { return errors.New("no") },
	})
	require.NoError(t, err)
	require.Equal(t, "terminal\r\n", out.String())
}

// A Run for which the server grants no channel closes the one opened ahead to make room, if
// the terminal was already asked for on it.
func TestPTYAskedForAheadMakesPlaceForARun(t *testing.T) {
	client := realLink(t, "MaxSessions 2")
	pty := testPTY
	client.OpenAhead()
	client.AskPTYAhead(&pty)
	require.NoError(t, client.Run(testContext(t), "true", nil, nil, nil))
	holding, held := newTrigger("held"), make(chan error, 1)
	ctx, cancel := context.WithCancel(testContext(t))
	go func() { held <- client.Run(ctx, "echo held; cat", blockingReader{ctx}, holding, nil) }()
	<-holding.seen
	var out bytes.Buffer
	require.NoError(t, client.Run(testContext(t), "test -t 0 || echo no terminal", nil, &out, nil))
	require.Equal(t, "no terminal\n", out.String())
	cancel()
	require.Error(t, <-held)
}

// A blockingReader returns nothing until its context ends.
type blockingReader struct{ ctx context.Context }

func (r blockingReader) Read([]byte) (int, error) {
	<-r.ctx.Done()
	return 0, context.Cause(r.ctx)
}
