package sshfwd

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshtest"
)

func TestDialUnix(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		path := shortSocketPath(t)
		listener, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer listener.Close()
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}
		}()
		conn, err := client.DialUnix(testContext(t), path)
		require.NoError(t, err)
		want := bytes.Repeat([]byte("x"), 100_000)
		_, err = conn.Write(want)
		require.NoError(t, err)
		require.NoError(t, conn.CloseWrite())
		got, err := io.ReadAll(conn)
		require.NoError(t, err, "the end of the echo arrives: it was half-closed")
		require.Equal(t, want, got)
		require.NoError(t, conn.Close())
		require.NoError(t, conn.Close())
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

// The bridge proves its forward this way: through the host to itself.
func TestDialUnixReachesOurOwnForward(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		path := shortSocketPath(t)
		_, err := newForwarder(t, client, 0).Forward(testContext(t), path, func(_ context.Context, conn Conn) {
			_, _ = io.WriteString(conn, "OK Pleased to meet you\n")
		})
		require.NoError(t, err)
		conn, err := client.DialUnix(testContext(t), path)
		require.NoError(t, err)
		defer conn.Close()
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "OK Pleased to meet you\n", string(got))
	})
}

func TestDialUnixWhereNobodyListens(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		path := shortSocketPath(t)
		_, err := client.DialUnix(testContext(t), path)
		var refused *DialUnixError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, path, refused.Path)
		require.False(t, refused.Prohibited)
		require.False(t, refused.Unsupported)
		require.NotEmpty(t, refused.Hint())
	})
}

func TestDialUnixProhibited(t *testing.T) {
	client := embedded(t, &sshtest.Server{Faults: sshtest.Faults{DenyDirect: true}})
	_, err := client.DialUnix(testContext(t), shortSocketPath(t))
	var refused *DialUnixError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Prohibited)
}

func TestDialUnixUnsupported(t *testing.T) {
	srv := &sshtest.Server{ChannelHandlers: map[string]sshtest.ChannelHandler{directStreamLocal: nil}}
	_, err := embedded(t, srv).DialUnix(testContext(t), shortSocketPath(t))
	var refused *DialUnixError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Unsupported)
}

// sshd says no more than that it failed: the reason that Prohibited's comment
// warns of. If this fails, sshd has learnt to say more.
func TestDialUnixProhibitedBySSHD(t *testing.T) {
	client := realLink(t, "AllowStreamLocalForwarding no")
	_, err := client.DialUnix(testContext(t), shortSocketPath(t))
	var refused *DialUnixError
	require.ErrorAs(t, err, &refused)
	require.False(t, refused.Prohibited)
	_, err = newForwarder(t, client, 0).Forward(testContext(t), shortSocketPath(t), serveEcho)
	var forwardRefused *ForwardRefusedError
	require.ErrorAs(t, err, &forwardRefused)
}

func TestDialUnixGivesUpWithItsContext(t *testing.T) {
	srv := &sshtest.Server{Faults: sshtest.Faults{NeverConfirm: map[string]bool{directStreamLocal: true}}}
	client := embedded(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.DialUnix(ctx, shortSocketPath(t))
	require.ErrorIs(t, err, context.Canceled)
}
