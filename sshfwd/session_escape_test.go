package sshfwd

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/fakesshd"
)

// A typist is a user who types and reads the screen.
type typist struct {
	keys  *io.PipeWriter
	stdin *io.PipeReader

	mu    sync.Mutex
	shown bytes.Buffer
}

func newTypist(t *testing.T) *typist {
	u := &typist{}
	u.stdin, u.keys = io.Pipe()
	t.Cleanup(func() { _ = u.stdin.Close() })
	return u
}

func (u *typist) show(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.shown.WriteString(text)
}

func (u *typist) saw() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.shown.String()
}

func (u *typist) escape() *Escape { return &Escape{Char: '~', Show: u.show} }

func TestEscapeEndsALiveSession(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		user := newTypist(t)
		go func() { _, _ = io.WriteString(user.keys, "\r~.") }()
		status, err := client.Session(testContext(t), SessionRequest{
			Command: "sleep 60", PTY: &testPTY, Stdin: user.stdin, Escape: user.escape(),
		})
		require.ErrorIs(t, err, ErrDisconnected)
		require.Equal(t, ExitConnectionLost, status)
	})
}

// The link passes nothing any more, without an error.
func TestEscapeEndsASessionOnADeadLink(t *testing.T) {
	client, link := embeddedLink(t, &fakesshd.Server{})
	user := newTypist(t)
	started := make(chan struct{})
	go func() {
		<-started
		link.die()
		_, _ = user.keys.Write(bytes.Repeat([]byte("x"), 300<<10))
		_, _ = io.WriteString(user.keys, "\r~B~?~.")
	}()
	_, err := client.Session(testContext(t), SessionRequest{
		Command: "cat", PTY: &testPTY, Stdin: user.stdin, Escape: user.escape(),
		Started: func() { close(started) },
	})
	require.ErrorIs(t, err, ErrDisconnected)
	require.True(t, strings.HasPrefix(user.saw(), "~B\r\n~?\r\nSupported"), user.saw())
}

// The remote program reads nothing; more than x/crypto's window is typed.
func TestEscapeWorksWhileTheRemoteDoesNotRead(t *testing.T) {
	block := make(chan struct{})
	srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{
		"session": func(_ *fakesshd.Conn, newCh ssh.NewChannel) {
			_, reqs, err := newCh.Accept()
			if err != nil {
				return
			}
			for req := range reqs {
				_ = req.Reply(true, nil)
			}
			close(block)
		},
	}}
	client := embedded(t, srv)
	user := newTypist(t)
	go func() {
		_, _ = user.keys.Write(bytes.Repeat([]byte("x"), 5<<19)) // 2.5 MiB
		_, _ = io.WriteString(user.keys, "\r~.")
	}()
	_, err := client.Session(testContext(t), SessionRequest{PTY: &testPTY, Stdin: user.stdin, Escape: user.escape()})
	require.ErrorIs(t, err, ErrDisconnected)
	_ = client.Close()
	requireClosed(t, "the end of the channel", block)
}

func TestEscapesThatDoSomethingElse(t *testing.T) {
	broken := make(chan []byte, 1)
	srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{
		"session": func(_ *fakesshd.Conn, newCh ssh.NewChannel) {
			ch, reqs, err := newCh.Accept()
			if err != nil {
				return
			}
			for req := range reqs {
				if req.Type == "break" {
					broken <- req.Payload
				}
				_ = req.Reply(true, nil)
			}
			_ = ch.Close()
		},
	}}
	client := embedded(t, srv)
	user := newTypist(t)
	suspended := make(chan struct{})
	escape := user.escape()
	escape.Suspend = func() { close(suspended) }
	escape.CommandLine = true
	go func() {
		_, _ = io.WriteString(user.keys, "~B~\x1a~#~&~R~C~v")
		<-suspended
		<-broken
		_, _ = io.WriteString(user.keys, "~.")
	}()
	_, err := client.Session(testContext(t), SessionRequest{PTY: &testPTY, Stdin: user.stdin, Escape: escape})
	require.ErrorIs(t, err, ErrDisconnected)
	require.Equal(t, "~B\r\n~^Z [suspended]\r\n~#\r\n"+
		"The following connections are open:\r\n  #0 client-session ([session])\r\n"+
		"~& [not supported: suspend it, and continue it in the background; or see gpg-bridge up, or -N]\r\n"+
		"~R [not supported: the keys are renewed by themselves]\r\n"+
		"~C [not supported: give -L, -R and -D when you start it]\r\n~v [not supported]\r\n", user.saw())
}

func TestEscapeIsTakenOutOfTheInput(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		user := newTypist(t)
		go func() {
			_, _ = io.WriteString(user.keys, "one\n~?~~two~.\n")
			_ = user.keys.Close()
		}()
		var stdout bytes.Buffer
		status, err := client.Session(testContext(t), SessionRequest{
			Command: "cat", Stdin: user.stdin, Escape: user.escape(), Stdout: &stdout,
		})
		require.NoError(t, err)
		require.Zero(t, status)
		require.Equal(t, "one\n~two~.\n", stdout.String())
	})
}

func TestSessionRunsASubsystem(t *testing.T) {
	client := embedded(t, &fakesshd.Server{Subsystems: map[string]string{"greet": "echo hello"}})
	var stdout bytes.Buffer
	status, err := client.Session(testContext(t), SessionRequest{Command: "greet", Subsystem: true, Stdout: &stdout})
	require.NoError(t, err)
	require.Zero(t, status)
	require.Equal(t, "hello\n", stdout.String())
	_, err = client.Session(testContext(t), SessionRequest{Command: "other", Subsystem: true})
	var refused *RequestRefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "subsystem", refused.Request)
}

// A lost link is distinguished from a channel that ended without a status.
func TestSessionTellsALostLink(t *testing.T) {
	var lost *link.LostError
	srv := &fakesshd.Server{Faults: fakesshd.Faults{NoExitStatus: true}}
	client := embedded(t, srv)
	_, err := client.Session(testContext(t), SessionRequest{Command: "true"})
	require.ErrorIs(t, err, link.ErrNoExitStatus)
	require.False(t, errors.As(err, &lost))
	stdin, feed := io.Pipe()
	defer feed.Close()
	_, err = client.Session(testContext(t), SessionRequest{Command: "cat", Stdin: stdin, Started: srv.CloseConns})
	require.ErrorIs(t, err, link.ErrNoExitStatus)
	require.ErrorAs(t, err, &lost)
}
