package sshfwd

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

	"gpg-bridge/internal/sshtest"
	"gpg-bridge/internal/testenv"
)

// A forwardLog keeps what a Client says of its forwards.
type forwardLog struct {
	mu     sync.Mutex
	ports  []int
	failed chan error
}

func newForwardLog() *forwardLog { return &forwardLog{failed: make(chan error, 100)} }

func (l *forwardLog) events() ForwardEvents {
	return ForwardEvents{
		Failed: func(err error) { l.failed <- err },
		Allocated: func(_ ForwardSpec, port int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.ports = append(l.ports, port)
		},
	}
}

// greeter listens, sends back each connection's whole input behind a greeting,
// and ends with the test.
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

func specs(t *testing.T, kind string, values ...string) (all []ForwardSpec) {
	t.Helper()
	for _, value := range values {
		spec, err := parseForward(kind, value)
		require.NoError(t, err)
		all = append(all, spec)
	}
	return all
}

func TestLocalForwards(t *testing.T) {
	client := realLink(t)
	dir := testenv.ShortDir(t)
	port := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	far := filepath.Join(dir, "far")
	greeter(t, "unix", far)
	near := filepath.Join(dir, "near")
	toPort, toPath := freePort(t), freePort(t)
	log := newForwardLog()
	forwards := ForwardSpecs{StreamLocalBindMask: 0o177, Local: specs(t, "LocalForward",
		fmt.Sprintf("%d:localhost:%d", toPort, port), fmt.Sprintf("%d:%s", toPath, far), near+":"+far,
	)}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, log.events()))
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
	client := realLink(t)
	port := freePort(t)
	log := newForwardLog()
	forwards := ForwardSpecs{Local: specs(t, "LocalForward", fmt.Sprintf("%d:localhost:%d", port, freePort(t)))}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, log.events()))
	conn, err := net.Dial("tcp", at(port))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, <-log.failed, "Connection refused")
}

func TestRemoteForwards(t *testing.T) {
	client := realLink(t)
	dir := testenv.ShortDir(t)
	port := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	near := filepath.Join(dir, "near")
	greeter(t, "unix", near)
	far := filepath.Join(dir, "far")
	toPort, toPath := freePort(t), freePort(t)
	log := newForwardLog()
	forwards := ForwardSpecs{Remote: specs(t, "RemoteForward",
		fmt.Sprintf("%d:localhost:%d", toPort, port), fmt.Sprintf("127.0.0.1:%d:%s", toPath, near), far+":"+near,
		fmt.Sprintf("0:localhost:%d", port),
	)}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, log.events()))
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
	client := realLink(t)
	port := freePort(t)
	log := newForwardLog()
	forwards := ForwardSpecs{Remote: specs(t, "RemoteForward", fmt.Sprintf("%d:localhost:%d", port, freePort(t)))}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, log.events()))
	conn, err := net.Dial("tcp", at(port))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.ErrorContains(t, <-log.failed, "connection refused")
}

func TestDynamicForward(t *testing.T) {
	client := realLink(t)
	target := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	port := freePort(t)
	forwards := ForwardSpecs{Dynamic: specs(t, "DynamicForward", strconv.Itoa(port))}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, newForwardLog().events()))
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
	client := realLink(t)
	taken := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	six, err := net.Listen("tcp", net.JoinHostPort("::1", strconv.Itoa(taken)))
	if err == nil {
		defer six.Close()
	}
	file := filepath.Join(testenv.ShortDir(t), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	good := freePort(t)
	forwards := ForwardSpecs{
		StreamLocalBindUnlink: true,
		Local: specs(t, "LocalForward", fmt.Sprintf("%d:h:1", taken), file+":h:1", "nosuch.invalid:8080:h:1",
			fmt.Sprintf("%d:localhost:%d", good, taken)),
		Remote: specs(t, "RemoteForward", fmt.Sprintf("127.0.0.1:%d:h:1", taken), file+":h:1"),
	}
	failed := client.OpenForwards(testContext(t), forwards, newForwardLog().events())
	var texts []string
	for _, err := range failed {
		var failure *ForwardFailedError
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
		got, err := ForwardSpecs{GatewayPorts: test.gateway}.bindAddresses(t.Context(), test.host)
		require.NoError(t, err)
		require.Equal(t, test.want, got, "%+v", test)
	}
}

// A channel that was not asked for is refused, whatever port it names.
func TestForwardedTCPNobodyAskedFor(t *testing.T) {
	conns := make(chan *sshtest.Conn, 1)
	srv := &sshtest.Server{RequestHandlers: map[string]sshtest.RequestHandler{
		"tcpip-forward": func(conn *sshtest.Conn, _ *ssh.Request) (bool, []byte) {
			conns <- conn
			return true, nil
		},
	}}
	client := embedded(t, srv)
	target := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	forwards := ForwardSpecs{Remote: specs(t, "RemoteForward", fmt.Sprintf("7001:localhost:%d", target))}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, newForwardLog().events()))
	conn := <-conns
	open := func(payload []byte) error {
		ch, reqs, err := conn.OpenChannel(forwardedTCP, payload)
		if err == nil {
			go func() {
				for range reqs {
				}
			}()
			_ = ch.Close()
		}
		return err
	}
	require.NoError(t, open(ssh.Marshal(tcpChannel{Host: "localhost", Port: 7001})))
	require.Error(t, open(ssh.Marshal(tcpChannel{Host: "localhost", Port: 7002})))
	require.Error(t, open(ssh.Marshal(tcpChannel{Host: "example", Port: 7001})))
	require.Error(t, open([]byte("garbage")))
}

// Many connections at once, all of which come through whole.
func TestForwardsManyConnections(t *testing.T) {
	client := realLink(t)
	far := filepath.Join(testenv.ShortDir(t), "far")
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
	forwards := ForwardSpecs{Local: specs(t, "LocalForward", fmt.Sprintf("%d:%s", port, far))}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, newForwardLog().events()))
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

// What is under way when the link dies ends with it.
func TestForwardsEndWithTheLink(t *testing.T) {
	srv := &sshtest.Server{}
	client := embedded(t, srv)
	port := freePort(t)
	forwards := ForwardSpecs{Local: specs(t, "LocalForward", fmt.Sprintf("%d:/nowhere", port))}
	require.Empty(t, client.OpenForwards(context.Background(), forwards, newForwardLog().events()))
	srv.CloseConns()
	require.Error(t, client.Wait())
	require.NoError(t, client.Close())
	_, err := net.Dial("tcp", at(port))
	require.Error(t, err)
	require.NotEmpty(t, client.OpenForwards(context.Background(), forwards, newForwardLog().events()))
}
