package sshfwd

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/wire"
)

// tcpPair is a connection of ours, and its peer.
func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := (&dialer{config: &config.Config{TCPKeepAlive: true}}).tcp(nil).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	peer, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = conn.Close(), peer.Close() })
	return conn.(*net.TCPConn), peer.(*net.TCPConn)
}

// setDeaf has the kernel drop all that arrives for a connection, as if the network were
// down: nobody acknowledges.
func setDeaf(t *testing.T, conn *net.TCPConn, deaf bool) {
	t.Helper()
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	dropAll := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	require.NoError(t, raw.Control(func(fd uintptr) {
		if deaf {
			err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &dropAll[0]})
		} else {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
		}
	}))
	require.NoError(t, err)
}

// A link that is down is noticed without sending data: nothing is retransmitted then, so
// the first byte after the outage passes at once.
func TestLinkIsAskedWithoutData(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	before := env.KeepaliveOf(t, near)
	info := func() unix.TCPInfo {
		p, err := newAckProbe(near)
		require.NoError(t, err)
		found, err := p.info()
		require.NoError(t, err)
		return found
	}
	require.Eventually(t, func() bool { return info().Last_ack_recv > 1100 }, linkPatience, 10*time.Millisecond)
	require.True(t, isUp(t.Context(), near))
	require.Less(t, info().Last_ack_recv, uint32(1100), "it was asked")

	setDeaf(t, far, true)
	require.Eventually(t, func() bool { return info().Last_ack_recv > 1100 }, linkPatience, 10*time.Millisecond)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		require.False(t, isUp(ctx, near))
		cancel()
	}
	down := info()
	require.Equal(t, [4]uint64{}, [4]uint64{down.Bytes_sent, uint64(down.Unacked), uint64(down.Retransmits), uint64(down.Backoff)})
	require.NotZero(t, down.Probes)

	setDeaf(t, far, false)
	require.True(t, isUp(t.Context(), near))
	require.Equal(t, before, env.KeepaliveOf(t, near), "the keepalives are as they were")
	_, err := near.Write([]byte("x"))
	require.NoError(t, err)
	_, err = far.Read(make([]byte, 1))
	require.NoError(t, err)
}

// Nothing is sent while a connection is down; isUp says why.
func TestDialUnixAsksNobodyWhereTheLinkIsDown(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	var asked atomic.Int32
	client := embedded(t, &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{
		directStreamLocal: func(_ *fakesshd.Conn, ch ssh.NewChannel) {
			asked.Add(1)
			_ = ch.Reject(ssh.ConnectionFailed, "nobody there")
		},
	}})
	client.wire = &wire.Conn{Conn: near}
	setDeaf(t, far, true)
	time.Sleep(freshAck + 100*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := client.DialUnix(ctx, "/s")
	require.ErrorIs(t, err, link.ErrUnanswered)
	require.Zero(t, asked.Load())

	setDeaf(t, far, false)
	_, err = client.DialUnix(testContext(t), "/s")
	var refused *link.DialError
	require.ErrorAs(t, err, &refused)
	require.EqualValues(t, 1, asked.Load())
}
