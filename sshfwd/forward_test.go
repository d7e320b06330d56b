package sshfwd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
)

func shortSocketPath(t *testing.T) string { return filepath.Join(env.ShortDir(t), "S") }

// dialSocket connects to the forwarded socket as soon as it listens, and again
// while its backlog is full.
func dialSocket(path string) (*net.UnixConn, error) {
	deadline := time.Now().Add(linkPatience)
	for {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		retry := errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ECONNREFUSED)
		if err == nil || !retry || time.Now().After(deadline) {
			return conn, err
		}
		time.Sleep(time.Millisecond)
	}
}

// echoRoundTrip sends a text to an echo server and compares what comes back.
func echoRoundTrip(path, text string) error {
	conn, err := dialSocket(path)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(linkPatience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return err
	}
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if err == nil && string(got) != text {
		return errors.New("got back " + string(got))
	}
	return err
}

func TestForwardLosesNoEarlyConnection(t *testing.T) {
	const count = 150
	onBoth(t, func(t *testing.T, client *Client) {
		path := shortSocketPath(t)
		errs := make([]error, count)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = echoRoundTrip(path, "GETINFO version\n") })
		}
		_, err := newForwarder(t, client, 0).Forward(testContext(t), path, serveEcho)
		require.NoError(t, err)
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
	})
}

func TestForwardCarriesBulkBothWays(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		path := shortSocketPath(t)
		_, err := newForwarder(t, client, 0).Forward(testContext(t), path, serveEcho)
		require.NoError(t, err)
		conn, err := dialSocket(path)
		require.NoError(t, err)
		defer conn.Close()
		want := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB: more than a window
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = conn.Write(want)
			_ = conn.CloseWrite()
		})
		got, err := io.ReadAll(conn)
		wg.Wait()
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
	})
}

// Whatever blocks the serve call of a connection must not block Close: a peer that is
// silent, one that does not read, or data that serve does not read.
func TestForwardCloseEndsBlockedConns(t *testing.T) {
	blocked := map[string]func(ctx context.Context, conn *Conn){
		"reading": func(_ context.Context, conn *Conn) { _, _ = io.Copy(io.Discard, conn) },
		"writing": func(_ context.Context, conn *Conn) {
			for data := make([]byte, 1<<20); ; {
				if _, err := conn.Write(data); err != nil {
					return
				}
			}
		},
		"not reading": func(ctx context.Context, _ *Conn) { <-ctx.Done() },
	}
	for name, serve := range blocked {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, client *Client) {
				path := shortSocketPath(t)
				serving := make(chan struct{}, 3)
				forward, err := newForwarder(t, client, 0).Forward(testContext(t), path, func(ctx context.Context, conn *Conn) {
					serving <- struct{}{}
					serve(ctx, conn)
				})
				require.NoError(t, err)
				for range cap(serving) {
					conn, err := dialSocket(path)
					require.NoError(t, err)
					defer conn.Close()
					require.NoError(t, conn.SetWriteDeadline(time.Now().Add(time.Second/4)))
					if name == "not reading" {
						_, _ = conn.Write(make([]byte, 8<<20)) // until nothing more fits
					}
					<-serving
				}
				if name == "reading" {
					require.NoError(t, forward.Close(testContext(t)))
				} else {
					// What is queued for a process that does not read keeps the
					// server from answering; that is Close's ctx to bound.
					ctx, cancel := context.WithTimeout(t.Context(), time.Second/10)
					defer cancel()
					_ = forward.Close(ctx)
					require.NoError(t, client.Close())
				}
				forward.Wait()
				require.Zero(t, len(forward.conns))
			})
		})
	}
}

func TestForwardTheSamePathAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		path := shortSocketPath(t)
		forwarder := newForwarder(t, client, 0)
		for range 3 {
			forward, err := forwarder.Forward(testContext(t), path, serveEcho)
			require.NoError(t, err)
			require.NoError(t, echoRoundTrip(path, "hello"))
			_, err = forwarder.Forward(testContext(t), path, serveEcho)
			require.ErrorContains(t, err, "already")
			require.NoError(t, forward.Close(testContext(t)))
			require.NoError(t, forward.Close(testContext(t)), "a second Close")

			info, err := os.Stat(path)
			require.NoError(t, err, "the file stays")
			require.Equal(t, os.ModeSocket|0o600, info.Mode())
			_, err = net.Dial("unix", path)
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
			_, err = forwarder.Forward(testContext(t), path, serveEcho)
			var refused *link.RefusedError
			require.ErrorAs(t, err, &refused, "while the file is there")
			require.Equal(t, path, refused.Path)
			require.NotEmpty(t, refused.Hint())
			require.NoError(t, os.Remove(path))
		}
	})
}

func TestForwardTwoPaths(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		forwarder := newForwarder(t, client, 0)
		one, two := shortSocketPath(t), shortSocketPath(t)
		for _, path := range []string{one, two} {
			_, err := forwarder.Forward(testContext(t), path, func(_ context.Context, conn *Conn) {
				_, _ = io.WriteString(conn, path)
			})
			require.NoError(t, err)
		}
		for _, path := range []string{one, two} {
			conn, err := dialSocket(path)
			require.NoError(t, err)
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Equal(t, path, string(got))
			require.NoError(t, conn.Close())
		}
	})
}

func TestForwardRefusesPathsItCannotMean(t *testing.T) {
	forwarder := newForwarder(t, embedded(t, &fakesshd.Server{}), 0)
	for _, path := range []string{"", "S", "~/S", "/tmp/a\x00b"} {
		_, err := forwarder.Forward(testContext(t), path, serveEcho)
		require.ErrorContains(t, err, "not an absolute path", "%q", path)
	}
}

func TestForwarderIsOne(t *testing.T) {
	client := embedded(t, &fakesshd.Server{})
	newForwarder(t, client, 0)
	_, err := client.newForwarder(1)
	require.ErrorIs(t, err, ErrTaken)
}

// A hostile server opens channels that nobody asked for, and opens them early.
func TestForwardRejectsWhatWasNotAskedFor(t *testing.T) {
	path := shortSocketPath(t)
	reasons := make(map[string]ssh.RejectionReason)
	early := make(chan string, 1)
	srv := &fakesshd.Server{}
	srv.Faults.BeforeGrant = func(conn *fakesshd.Conn, path string) {
		for _, other := range []string{path + "x", "", "/"} {
			_, err := conn.OpenForwarded(other)
			reasons[other] = rejection(err)
		}
		for _, kind := range []string{"forwarded-tcpip", "x11", "auth-agent@openssh.com", "session", "direct-streamlocal@openssh.com"} {
			_, _, err := conn.OpenChannel(kind, ssh.Marshal(struct{ Path, Reserved string }{path, ""}))
			reasons[kind] = rejection(err)
		}
		_, _, err := conn.OpenChannel("forwarded-streamlocal@openssh.com", []byte{0, 0, 0, 9})
		reasons["malformed"] = rejection(err)
		early <- exchange(conn, path)
	}
	client := embedded(t, srv)
	_, err := newForwarder(t, client, 0).Forward(testContext(t), path, serveEcho)
	require.NoError(t, err)
	require.Equal(t, "early", <-early, "what comes before the grant is served")
	require.Equal(t, map[string]ssh.RejectionReason{
		path + "x": ssh.Prohibited, "": ssh.Prohibited, "/": ssh.Prohibited, "malformed": ssh.Prohibited,
		"forwarded-tcpip": ssh.UnknownChannelType, "x11": ssh.UnknownChannelType, "session": ssh.UnknownChannelType,
		"auth-agent@openssh.com": ssh.UnknownChannelType, "direct-streamlocal@openssh.com": ssh.UnknownChannelType,
	}, reasons)
}

func rejection(err error) ssh.RejectionReason {
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		return refused.Reason
	}
	return 0
}

// exchange says "early" on a forwarded channel and returns what comes back.
func exchange(conn *fakesshd.Conn, path string) string {
	ch, err := conn.OpenForwarded(path)
	if err != nil {
		return err.Error()
	}
	defer ch.Close()
	_, _ = io.WriteString(ch, "early")
	_ = ch.CloseWrite()
	got, _ := io.ReadAll(ch)
	return string(got)
}

func TestForwardBoundsItsConns(t *testing.T) {
	const most = 3
	path := shortSocketPath(t)
	connected := make(chan *fakesshd.Conn, 1)
	srv := &fakesshd.Server{}
	srv.Faults.BeforeGrant = func(conn *fakesshd.Conn, _ string) { connected <- conn }
	_, err := newForwarder(t, embedded(t, srv), most).Forward(testContext(t), path, serveEcho)
	require.NoError(t, err)
	server := <-connected
	var open []ssh.Channel
	for range most {
		ch, err := server.OpenForwarded(path)
		require.NoError(t, err)
		open = append(open, ch)
	}
	_, err = server.OpenForwarded(path)
	require.Equal(t, ssh.ResourceShortage, rejection(err))
	require.NoError(t, open[0].Close())
	require.Eventually(t, func() bool {
		_, err := server.OpenForwarded(path)
		return err == nil
	}, linkPatience, time.Millisecond, "the place is free again")
}

func TestForwardGivesUpWithItsContext(t *testing.T) {
	gate := make(chan struct{})
	path := shortSocketPath(t)
	srv := &fakesshd.Server{Faults: fakesshd.Faults{HoldReplies: gate}}
	forwarder := newForwarder(t, embedded(t, srv), 0)
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		if conn, err := dialSocket(path); err == nil {
			_ = conn.Close()
		}
		cancel()
	}()
	_, err := forwarder.Forward(ctx, path, serveEcho)
	require.ErrorIs(t, err, context.Canceled)
	requireClosed(t, "the server listens", listening)
	_, err = forwarder.Forward(t.Context(), path, serveEcho)
	require.ErrorContains(t, err, "already", "its reply is still to come")
	close(gate)
	require.Eventually(t, func() bool {
		_, err := net.Dial("unix", path)
		return errors.Is(err, syscall.ECONNREFUSED)
	}, linkPatience, time.Millisecond, "the late grant is withdrawn")
	require.NoError(t, os.Remove(path))
	require.Eventually(t, func() bool {
		_, err := forwarder.Forward(testContext(t), path, serveEcho)
		return err == nil
	}, linkPatience, time.Millisecond, "the path can be forwarded again")
}

func TestForwardCloseOnADeadLink(t *testing.T) {
	for name, send := range map[string]int{"silent": 0, "with the link full": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			client, link := embeddedLink(t, &fakesshd.Server{})
			path := shortSocketPath(t)
			dead, serving := make(chan struct{}), make(chan struct{})
			forward, err := newForwarder(t, client, 0).Forward(testContext(t), path, func(_ context.Context, conn *Conn) {
				close(serving)
				<-dead
				_, _ = conn.Write(make([]byte, send))
				_, _ = io.Copy(io.Discard, conn)
			})
			require.NoError(t, err)
			conn, err := dialSocket(path)
			require.NoError(t, err)
			defer conn.Close()
			requireClosed(t, "serve runs", serving)
			link.die()
			close(dead)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/10)
			defer cancel()
			require.ErrorIs(t, forward.Close(ctx), context.DeadlineExceeded)
			require.NoError(t, client.Close())
			forward.Wait()
		})
	}
}

func TestForwardEndsWithTheConnection(t *testing.T) {
	client := embedded(t, &fakesshd.Server{})
	path := shortSocketPath(t)
	forwarder := newForwarder(t, client, 0)
	cause := make(chan error, 1)
	serving := make(chan struct{})
	forward, err := forwarder.Forward(testContext(t), path, func(ctx context.Context, _ *Conn) {
		close(serving)
		<-ctx.Done()
		cause <- context.Cause(ctx)
	})
	require.NoError(t, err)
	conn, err := dialSocket(path)
	require.NoError(t, err)
	defer conn.Close()
	requireClosed(t, "serve runs", serving)
	require.NoError(t, client.Close())
	forward.Wait()
	require.ErrorIs(t, <-cause, ErrConnectionEnded)
	require.NoError(t, forward.Close(t.Context()))
	forwarder.Wait()
	_, err = forwarder.Forward(t.Context(), path+"2", serveEcho)
	require.ErrorIs(t, err, net.ErrClosed)
}
