package sshfwd

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/terminal"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/sshfwd/config"
)

var testPTY = terminal.PTY{
	Term:       "vt220",
	WindowSize: terminal.WindowSize{Cols: 132, Rows: 43, XPixels: 1320, YPixels: 860},
}

func TestSessionHasTheTerminalAskedFor(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		var stdout bytes.Buffer
		status, err := client.Session(testContext(t), SessionRequest{
			Command: "stty size; echo $TERM; echo $GB_TEST; echo err >&2; exit 9",
			PTY:     &testPTY,
			Env:     []config.EnvVar{{Name: "GB_TEST", Value: "a value"}},
			Stdout:  &stdout,
		})
		require.NoError(t, err)
		require.Equal(t, 9, status)
		require.Equal(t, "43 132\r\nvt220\r\na value\r\nerr\r\n", stdout.String())
	})
}

func TestSessionWithoutATerminal(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		var stdout, stderr bytes.Buffer
		status, err := client.Session(testContext(t), SessionRequest{
			Command: "test -t 0 || echo no terminal; echo $GB_A$GB_B; echo err >&2",
			Env:     []config.EnvVar{{Name: "GB_A", Value: "a"}, {Name: "GB_B", Value: "b"}},
			Stdout:  &stdout, Stderr: &stderr, NoStdin: true, Stdin: strings.NewReader("not read"),
		})
		require.NoError(t, err)
		require.Zero(t, status)
		require.Equal(t, "no terminal\nab\n", stdout.String())
		require.Equal(t, "err\n", stderr.String())
	})
}

// A Modes of OpenSSH's form changes the interrupt character to ^X.
func TestSessionSetsTheTerminalModes(t *testing.T) {
	client := realLink(t)
	pty := testPTY
	pty.Modes = []byte{1, 0, 0, 0, 'X' - '@', 53, 0, 0, 0, 0, terminal.TtyOpEnd} // VINTR, ECHO
	var stdout bytes.Buffer
	_, err := client.Session(testContext(t), SessionRequest{Command: "stty -a", PTY: &pty, Stdout: &stdout})
	require.NoError(t, err)
	require.Contains(t, stdout.String(), "intr = ^X")
	require.Contains(t, stdout.String(), "-echo ")
}

func TestSessionRunsAShell(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		var stdout bytes.Buffer
		status, err := client.Session(testContext(t), SessionRequest{
			Stdin: strings.NewReader("echo from the shell\nexit 4\n"), Stdout: &stdout,
		})
		require.NoError(t, err)
		require.Equal(t, 4, status)
		require.Contains(t, stdout.String(), "from the shell\n")
	})
}

func TestSessionFollowsTheSize(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		stdin, keys := io.Pipe() // at its EOF sshd lets go of the terminal
		defer keys.Close()
		sizes := make(chan terminal.WindowSize)
		ready := newTrigger("ready")
		var resized sync.WaitGroup
		resized.Go(func() {
			<-ready.seen
			sizes <- terminal.WindowSize{Cols: 77, Rows: 11}
		})
		status, err := client.Session(testContext(t), SessionRequest{
			Command: `echo ready; while test "$(stty size)" = "43 132"; do sleep 0.02; done; stty size; exit 7`,
			PTY:     &testPTY, Stdin: stdin, Stdout: ready, Resize: sizes,
		})
		require.NoError(t, err, "%q", ready.String())
		resized.Wait()
		require.Equal(t, 7, status)
		require.Contains(t, ready.String(), "11 77\r\n")
	})
}

// A trigger is a buffer that signals when it has a text in it.
type trigger struct {
	bytes.Buffer
	text string
	seen chan struct{}
	once sync.Once
}

func newTrigger(text string) *trigger { return &trigger{text: text, seen: make(chan struct{})} }

func (w *trigger) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.text) {
		w.once.Do(func() { close(w.seen) })
	}
	return n, err
}

func TestSessionStatusOfWhatIsNotAnExit(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		status, err := client.Session(testContext(t), SessionRequest{Command: "kill -KILL $$"})
		var exit *link.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, "KILL", exit.Signal)
		require.Equal(t, ExitConnectionLost, status)

		stdin, feed := io.Pipe()
		defer feed.Close()
		status, err = client.Session(testContext(t), SessionRequest{
			Command: "exec cat", Stdin: stdin,
			Started: func() { _ = client.Close() },
		})
		require.ErrorIs(t, err, link.ErrNoExitStatus)
		require.Equal(t, ExitConnectionLost, status)
	})
}

// Ctrl-C travels as a byte, and the remote terminal makes it a signal.
func TestSessionCarriesKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		stdin, keys := io.Pipe()
		ready := newTrigger("ready")
		var typing sync.WaitGroup
		typing.Go(func() {
			<-ready.seen
			_, _ = keys.Write([]byte{3})
			_ = keys.Close()
		})
		status, err := client.Session(testContext(t), SessionRequest{
			Command: `trap 'exit 130' INT; echo ready; while :; do sleep 0.02; done`,
			PTY:     &testPTY, Stdout: ready, Stdin: stdin,
		})
		typing.Wait()
		require.NoError(t, err)
		require.Equal(t, 130, status)
	})
}

func TestSessionStartedComesBeforeStdin(t *testing.T) {
	client := embedded(t, &fakesshd.Server{})
	started := false
	var stdout bytes.Buffer
	_, err := client.Session(testContext(t), SessionRequest{
		Command: "cat", Stdout: &stdout,
		Stdin:   readerFunc(func([]byte) (int, error) { require.True(t, started); return 0, io.EOF }),
		Started: func() { started = true },
	})
	require.NoError(t, err)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
