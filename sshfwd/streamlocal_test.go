package sshfwd

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/fakesshd"
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
		conn, err := client.OpenUnix(testContext(t), path)
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

// This is how the bridge checks its forward: it connects through the host to itself.
func TestDialUnixReachesOurOwnForward(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		path := shortSocketPath(t)
		_, err := newForwarder(t, client, 0).Forward(testContext(t), path, func(_ context.Context, conn *Conn) {
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
		var refused *link.DialError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, path, refused.Path)
		require.False(t, refused.Prohibited)
		require.False(t, refused.Unsupported)
		require.NotEmpty(t, refused.Hint())
	})
}

func TestDialUnixProhibited(t *testing.T) {
	client := embedded(t, &fakesshd.Server{Faults: fakesshd.Faults{DenyDirect: true}})
	_, err := client.DialUnix(testContext(t), shortSocketPath(t))
	var refused *link.DialError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Prohibited)
}

func TestDialUnixUnsupported(t *testing.T) {
	srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{directStreamLocal: nil}}
	_, err := embedded(t, srv).DialUnix(testContext(t), shortSocketPath(t))
	var refused *link.DialError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Unsupported)
}

// sshd only says that it failed, which is what the comment of Prohibited warns of. If this
// test fails, sshd has learnt to say more.
func TestDialUnixProhibitedBySSHD(t *testing.T) {
	client := realLink(t, "AllowStreamLocalForwarding no")
	_, err := client.DialUnix(testContext(t), shortSocketPath(t))
	var refused *link.DialError
	require.ErrorAs(t, err, &refused)
	require.False(t, refused.Prohibited)
	_, err = newForwarder(t, client, 0).Forward(testContext(t), shortSocketPath(t), serveEcho)
	var forwardRefused *link.RefusedError
	require.ErrorAs(t, err, &forwardRefused)
}

// While the server has not answered a call that was given up, and may never have received,
// no other one is sent.
func TestDialUnixAsksOnlyOnceUntilAnswered(t *testing.T) {
	var asked atomic.Int32
	answer := make(chan struct{})
	srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{
		directStreamLocal: func(_ *fakesshd.Conn, ch ssh.NewChannel) {
			asked.Add(1)
			<-answer
			_ = ch.Reject(ssh.ConnectionFailed, "nobody there")
		},
	}}
	client := embedded(t, srv)
	path := shortSocketPath(t)
	first, cancel := context.WithCancel(t.Context())
	go func() {
		for asked.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := client.DialUnix(first, path)
	require.ErrorIs(t, err, context.Canceled)
	for range 3 {
		hurried, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err = client.DialUnix(hurried, path)
		cancel()
		require.ErrorIs(t, err, link.ErrUnanswered)
	}
	require.EqualValues(t, 1, asked.Load())
	time.AfterFunc(50*time.Millisecond, func() { close(answer) })
	var refused *link.DialError
	_, err = client.DialUnix(testContext(t), path)
	require.ErrorAs(t, err, &refused, "it waits for the answer, and then asks")
	require.EqualValues(t, 2, asked.Load())
}

func TestDialUnixGivesUpWithItsContext(t *testing.T) {
	srv := &fakesshd.Server{Faults: fakesshd.Faults{NeverConfirm: map[string]bool{directStreamLocal: true}}}
	client := embedded(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.DialUnix(ctx, shortSocketPath(t))
	require.ErrorIs(t, err, context.Canceled)
}
