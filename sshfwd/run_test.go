package sshfwd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/fakesshd"
)

func TestRunTellsHowTheCommandEnded(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		for _, test := range []struct {
			command string
			want    *link.ExitError
		}{
			{"true", nil},
			{"exit 3", &link.ExitError{Status: 3}},
			{"exit 255", &link.ExitError{Status: 255}},
			{"kill -TERM $$", &link.ExitError{Status: 255, Signal: "TERM"}},
		} {
			err := client.Run(testContext(t), test.command, nil, nil, nil)
			if test.want == nil {
				require.NoError(t, err, test.command)
				continue
			}
			var exit *link.ExitError
			require.ErrorAs(t, err, &exit, test.command)
			require.Equal(t, test.want, exit, test.command)
		}
	})
}

func TestRunKeepsTheStreamsApart(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		var stdout, stderr bytes.Buffer
		err := client.Run(testContext(t), "echo out; echo err >&2; cat", nil, &stdout, &stderr)
		require.NoError(t, err, "cat ends: a nil stdin is empty")
		require.Equal(t, "out\n", stdout.String())
		require.Equal(t, "err\n", stderr.String())
	})
}

func TestRunCarriesStdinToStdout(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		want := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB
		var stdout, stderr bytes.Buffer
		require.NoError(t, client.Run(testContext(t), "cat", bytes.NewReader(want), &stdout, &stderr))
		require.True(t, bytes.Equal(want, stdout.Bytes()))
		require.Empty(t, stderr.String())
	})
}

func TestRunAScriptOnStdin(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		var stdout bytes.Buffer
		err := client.Run(testContext(t), "sh", strings.NewReader("echo \"$((6*7))\"\nexit 5\n"), &stdout, nil)
		var exit *link.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 5, exit.Status)
		require.Equal(t, "42\n", stdout.String())
	})
}

// The command ends without having read its stdin, which does not end.
func TestRunDoesNotWaitForStdin(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		stdin, feed := io.Pipe()
		defer feed.Close()
		require.NoError(t, client.Run(testContext(t), "true", stdin, nil, nil))
	})
}

func TestRunIsCancelled(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stdout cancelOnWrite
		stdout.cancel = cancel
		started := time.Now()
		err := client.Run(ctx, "echo started; exec sleep 30", nil, &stdout, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, time.Since(started), linkPatience)
	})
}

type cancelOnWrite struct{ cancel func() }

func (c *cancelOnWrite) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

func TestRunOnADeadLink(t *testing.T) {
	client, link := embeddedLink(t, &fakesshd.Server{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout := cancelOnWrite{cancel: func() {
		link.die()
		cancel()
	}}
	err := client.Run(ctx, "echo started; exec sleep 30", nil, &stdout, nil)
	require.ErrorIs(t, err, context.Canceled)
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// sshd, told that nobody reads (eow@openssh.com), ends the command.
func TestRunWhoseStdoutFails(t *testing.T) {
	client := realLink(t)
	err := client.Run(testContext(t), "exec yes", nil, fullDisk{}, nil)
	require.ErrorIs(t, err, errFull)
	var exit *link.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, "PIPE", exit.Signal)
}

func TestRunRefused(t *testing.T) {
	t.Run("session", func(t *testing.T) {
		client := embedded(t, &fakesshd.Server{Faults: fakesshd.Faults{DenySession: true}})
		require.ErrorContains(t, client.Run(testContext(t), "true", nil, nil, nil), "open a session")
	})
	t.Run("exec", func(t *testing.T) {
		client := embedded(t, &fakesshd.Server{Faults: fakesshd.Faults{DenyStart: true}})
		var refused *RequestRefusedError
		require.ErrorAs(t, client.Run(testContext(t), "true", nil, nil, nil), &refused)
		require.Equal(t, "exec", refused.Request)
	})
	t.Run("no exit status", func(t *testing.T) {
		client := embedded(t, &fakesshd.Server{Faults: fakesshd.Faults{NoExitStatus: true}})
		require.ErrorIs(t, client.Run(testContext(t), "true", nil, nil, nil), link.ErrNoExitStatus)
	})
	t.Run("no command", func(t *testing.T) {
		require.Error(t, (&Client{}).Run(t.Context(), "", nil, nil, nil))
	})
	t.Run("never confirmed", func(t *testing.T) {
		client := embedded(t, &fakesshd.Server{Faults: fakesshd.Faults{NeverConfirm: map[string]bool{"session": true}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/20)
		defer cancel()
		require.ErrorIs(t, client.Run(ctx, "true", nil, nil, nil), context.DeadlineExceeded)
	})
}
