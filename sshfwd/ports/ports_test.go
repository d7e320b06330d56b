package ports

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/config"
)

// A forwardLog records the events of forwards.
type forwardLog struct {
	mu     sync.Mutex
	ports  []int
	failed chan error
}

func newForwardLog() *forwardLog { return &forwardLog{failed: make(chan error, 100)} }

func (l *forwardLog) events() Events {
	return Events{
		Log:    env.QuietLog(),
		Failed: func(err error) { l.failed <- err },
		Allocated: func(_ config.ForwardSpec, port int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.ports = append(l.ports, port)
		},
	}
}

// greeter listens, sends a greeting and then each connection's whole input back, and ends
// with the test.
func greeter(t *testing.T, network, address string) net.Addr {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				said, _ := io.ReadAll(conn) // up to the half-close
				_, _ = fmt.Fprintf(conn, "hello %s", said)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr()
}

// requireGreeting talks to a greeter at the other end of a forward.
func requireGreeting(t *testing.T, network, address string) {
	t.Helper()
	conn, err := net.Dial(network, address)
	require.NoError(t, err)
	defer conn.Close()
	requireGreetingOn(t, conn)
}

func requireGreetingOn(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.WriteString(conn, "there")
	require.NoError(t, err)
	require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello there", string(answer))
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func at(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func specs(t *testing.T, kind string, values ...string) (all []config.ForwardSpec) {
	t.Helper()
	for _, value := range values {
		spec, err := config.ParseForward(kind, value)
		require.NoError(t, err)
		all = append(all, spec)
	}
	return all
}

func TestLocalForwards(t *testing.T) {
	client := toReal(t)
	dir := env.ShortDir(t)
	port := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	far := filepath.Join(dir, "far")
	greeter(t, "unix", far)
	near := filepath.Join(dir, "near")
	toPort, toPath := freePort(t), freePort(t)
	log := newForwardLog()
	forwards := config.Forwards{StreamLocalBindMask: 0o177, Local: specs(t, "LocalForward",
		fmt.Sprintf("%d:localhost:%d", toPort, port), fmt.Sprintf("%d:%s", toPath, far), near+":"+far,
	)}
	require.Empty(t, Open(bounded(t), client, forwards, log.events()))
	for range 3 {
		requireGreeting(t, "tcp", at(toPort))
		requireGreeting(t, "tcp", at(toPath))
		requireGreeting(t, "unix", near)
	}
	info, err := os.Stat(near)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	waiting, err := net.Dial("tcp", at(toPort))
	require.NoError(t, err)
	defer waiting.Close()
	require.NoError(t, client.Close())
	_, err = waiting.Read(make([]byte, 1))
	require.Error(t, err, "a connection ends with the client")
	_, err = net.Dial("tcp", at(toPort))
	require.Error(t, err)
	require.NoFileExists(t, near)
}

func TestLocalForwardToNothing(t *testing.T) {
	client := toReal(t)
	port := freePort(t)
	log := newForwardLog()
	forwards := config.Forwards{Local: specs(t, "LocalForward", fmt.Sprintf("%d:localhost:%d", port, freePort(t)))}
	require.Empty(t, Open(bounded(t), client, forwards, log.events()))
	conn, err := net.Dial("tcp", at(port))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, <-log.failed, "Connection refused")
}

func TestRemoteForwards(t *testing.T) {
	client := toReal(t)
	dir := env.ShortDir(t)
	port := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	near := filepath.Join(dir, "near")
	greeter(t, "unix", near)
	far := filepath.Join(dir, "far")
	toPort, toPath := freePort(t), freePort(t)
	log := newForwardLog()
	forwards := config.Forwards{Remote: specs(t, "RemoteForward",
		fmt.Sprintf("%d:localhost:%d", toPort, port), fmt.Sprintf("127.0.0.1:%d:%s", toPath, near), far+":"+near,
		fmt.Sprintf("0:localhost:%d", port),
	)}
	require.Empty(t, Open(bounded(t), client, forwards, log.events()))
	require.Len(t, log.ports, 1)
	for range 3 {
		requireGreeting(t, "tcp", at(toPort))
		requireGreeting(t, "tcp", at(toPath))
		requireGreeting(t, "tcp", at(log.ports[0]))
		requireGreeting(t, "unix", far)
	}
	waiting, err := net.Dial("tcp", at(toPort))
	require.NoError(t, err)
	defer waiting.Close()
	require.NoError(t, client.Close())
	_, err = waiting.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestRemoteForwardToNothing(t *testing.T) {
	client := toReal(t)
	port := freePort(t)
	log := newForwardLog()
	forwards := config.Forwards{Remote: specs(t, "RemoteForward", fmt.Sprintf("%d:localhost:%d", port, freePort(t)))}
	require.Empty(t, Open(bounded(t), client, forwards, log.events()))
	conn, err := net.Dial("tcp", at(port))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.ErrorContains(t, <-log.failed, "connection refused")
}

func TestDynamicForward(t *testing.T) {
	client := toReal(t)
	target := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	port := freePort(t)
	forwards := config.Forwards{Dynamic: specs(t, "DynamicForward", strconv.Itoa(port))}
	require.Empty(t, Open(bounded(t), client, forwards, newForwardLog().events()))
	high, low := byte(target>>8), byte(target)
	for name, talk := range map[string][]string{
		"4":  {"\x04\x01" + string([]byte{high, low}) + "\x7f\x00\x00\x01me\x00", "\x00\x5a\x00\x00\x00\x00\x00\x00"},
		"4A": {"\x04\x01" + string([]byte{high, low}) + "\x00\x00\x00\x01me\x00localhost\x00", "\x00\x5a\x00\x00\x00\x00\x00\x00"},
		"5": {"\x05\x01\x00", "\x05\x00",
			"\x05\x01\x00\x03\x09localhost" + string([]byte{high, low}), "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", at(port))
			require.NoError(t, err)
			defer conn.Close()
			for i := 0; i < len(talk); i += 2 {
				_, err := io.WriteString(conn, talk[i])
				require.NoError(t, err)
				answer := make([]byte, len(talk[i+1]))
				_, err = io.ReadFull(conn, answer)
				require.NoError(t, err)
				require.Equal(t, talk[i+1], string(answer))
			}
			requireGreetingOn(t, conn)
		})
	}
	t.Run("refused", func(t *testing.T) {
		conn, err := net.Dial("tcp", at(port))
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x01")
		require.NoError(t, err)
		answer, _ := io.ReadAll(conn)
		require.Equal(t, "\x05\x00\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00", string(answer))
	})
}

func TestForwardsThatCannotBe(t *testing.T) {
	client := toReal(t)
	taken := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	six, err := net.Listen("tcp", net.JoinHostPort("::1", strconv.Itoa(taken)))
	if err == nil {
		defer six.Close()
	}
	file := filepath.Join(env.ShortDir(t), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	good := freePort(t)
	forwards := config.Forwards{
		StreamLocalBindUnlink: true,
		Local: specs(t, "LocalForward", fmt.Sprintf("%d:h:1", taken), file+":h:1", "nosuch.invalid:8080:h:1",
			fmt.Sprintf("%d:localhost:%d", good, taken)),
		Remote: specs(t, "RemoteForward", fmt.Sprintf("127.0.0.1:%d:h:1", taken), file+":h:1"),
	}
	failed := Open(bounded(t), client, forwards, newForwardLog().events())
	var texts []string
	for _, err := range failed {
		var failure *FailedError
		require.ErrorAs(t, err, &failure)
		require.NotEmpty(t, failure.Hint())
		texts = append(texts, err.Error())
	}
	require.Equal(t, []string{
		fmt.Sprintf("cannot listen to port %d: bind [127.0.0.1]:%d: address already in use", taken, taken),
		fmt.Sprintf("cannot listen to path %q: cannot bind to path %q: address already in use", file, file),
		`cannot listen to port 8080: cannot resolve "nosuch.invalid"`,
		fmt.Sprintf("remote port forwarding failed for listen port %d", taken),
		fmt.Sprintf("remote port forwarding failed for listen path %q", file),
	}, texts)
	require.FileExists(t, file, "what is no socket is not removed")
	requireGreeting(t, "tcp", at(good))
}

func TestBindAddresses(t *testing.T) {
	both := []string{"127.0.0.1", "::1"}
	for _, test := range []struct {
		host    string
		gateway bool
		want    []string
	}{
		{"", false, both},
		{"localhost", false, both},
		{"localhost", true, both},
		{"", true, []string{""}},
		{"*", false, []string{""}},
		{"192.0.2.1", false, []string{"192.0.2.1"}},
		{"::1", true, []string{"::1"}},
	} {
		got, err := bindAddresses(t.Context(), config.Forwards{GatewayPorts: test.gateway}, test.host)
		require.NoError(t, err)
		require.Equal(t, test.want, got, "%+v", test)
	}
}

// A channel that we did not ask for is refused, whatever port it names.
func TestForwardedTCPNobodyAskedFor(t *testing.T) {
	conns := make(chan *fakesshd.Conn, 1)
	srv := &fakesshd.Server{RequestHandlers: map[string]fakesshd.RequestHandler{
		"tcpip-forward": func(conn *fakesshd.Conn, _ *ssh.Request) (bool, []byte) {
			conns <- conn
			return true, nil
		},
	}}
	client := toFake(t, srv)
	target := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	forwards := config.Forwards{Remote: specs(t, "RemoteForward", fmt.Sprintf("7001:localhost:%d", target))}
	require.Empty(t, Open(bounded(t), client, forwards, newForwardLog().events()))
	conn := <-conns
	open := func(payload []byte) error {
		ch, reqs, err := conn.OpenChannel(sshfwd.ForwardedTCP, payload)
		if err == nil {
			go func() {
				for range reqs {
				}
			}()
			_ = ch.Close()
		}
		return err
	}
	require.NoError(t, open(ssh.Marshal(sshfwd.TCPChannel{Host: "localhost", Port: 7001})))
	require.Error(t, open(ssh.Marshal(sshfwd.TCPChannel{Host: "localhost", Port: 7002})))
	require.Error(t, open(ssh.Marshal(sshfwd.TCPChannel{Host: "example", Port: 7001})))
	require.Error(t, open([]byte("garbage")))
}

// Many concurrent connections, all of which arrive complete.
func TestForwardsManyConnections(t *testing.T) {
	client := toReal(t)
	far := filepath.Join(env.ShortDir(t), "far")
	l, err := net.Listen("unix", far)
	require.NoError(t, err)
	defer l.Close()
	var servers sync.WaitGroup
	servers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			servers.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	port := freePort(t)
	forwards := config.Forwards{Local: specs(t, "LocalForward", fmt.Sprintf("%d:%s", port, far))}
	require.Empty(t, Open(bounded(t), client, forwards, newForwardLog().events()))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			conn, err := net.Dial("tcp", at(port))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			go func() {
				_, _ = conn.Write(make([]byte, 1<<20))
				_ = conn.(*net.TCPConn).CloseWrite()
			}()
			n, err := io.Copy(io.Discard, bufio.NewReader(conn))
			if err != nil || n != 1<<20 {
				t.Errorf("%d bytes came back: %v", n, err)
			}
		})
	}
	wg.Wait()
	_ = l.Close()
	servers.Wait()
}

// Connections in progress end when the link dies.
func TestForwardsEndWithTheLink(t *testing.T) {
	srv := &fakesshd.Server{}
	client := toFake(t, srv)
	port := freePort(t)
	forwards := config.Forwards{Local: specs(t, "LocalForward", fmt.Sprintf("%d:/nowhere", port))}
	require.Empty(t, Open(context.Background(), client, forwards, newForwardLog().events()))
	srv.CloseConns()
	require.Error(t, client.Wait())
	require.NoError(t, client.Close())
	_, err := net.Dial("tcp", at(port))
	require.Error(t, err)
	require.NotEmpty(t, Open(context.Background(), client, forwards, newForwardLog().events()))
}
