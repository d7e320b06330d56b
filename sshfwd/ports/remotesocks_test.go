package ports

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/sshfwd/config"
)

// A socksTalk is what a client sends, and the answer that it should get.
type socksTalk []struct{ say, answer string }

// socksTalks are all ways to ask for a greeter at 127.0.0.1 and ::1.
func socksTalks(port int) map[string]socksTalk {
	to := string([]byte{byte(port >> 8), byte(port)})
	const granted4, method, granted5 = "\x00\x5a\x00\x00\x00\x00\x00\x00", "\x05\x00", "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	return map[string]socksTalk{
		"4":           {{"\x04\x01" + to + "\x7f\x00\x00\x01me\x00", granted4}},
		"4A":          {{"\x04\x01" + to + "\x00\x00\x00\x01me\x00localhost\x00", granted4}},
		"5 with IPv4": {{"\x05\x01\x00", method}, {"\x05\x01\x00\x01\x7f\x00\x00\x01" + to, granted5}},
		"5 with IPv6": {{"\x05\x01\x00", method}, {"\x05\x01\x00\x04" + string(net.IPv6loopback) + to, granted5}},
		"5 with a name": {{"\x05\x02\x02\x00", method},
			{"\x05\x01\x00\x03\x09localhost" + to, granted5}},
		"5 in one go": {{"\x05\x01\x00\x05\x01\x00\x03\x09localhost" + to, method + granted5}},
	}
}

func (talk socksTalk) hold(t *testing.T, conn io.ReadWriter) {
	t.Helper()
	for _, line := range talk {
		_, err := io.WriteString(conn, line.say)
		require.NoError(t, err)
		answer := make([]byte, len(line.answer))
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err)
		require.Equal(t, line.answer, string(answer))
	}
}

// greeterOnBoth listens on one port of 127.0.0.1 and ::1.
func greeterOnBoth(t *testing.T) int {
	t.Helper()
	port := greeter(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	greeter(t, "tcp", net.JoinHostPort("::1", strconv.Itoa(port)))
	return port
}

func requireAllSocks(t *testing.T, network, address string, target int) {
	t.Helper()
	for name, talk := range socksTalks(target) {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial(network, address)
			require.NoError(t, err)
			defer conn.Close()
			talk.hold(t, conn)
			requireGreetingOn(t, conn)
		})
	}
}

// The host's clients cannot tell whose proxy it is.
func TestSocksForTheHost(t *testing.T) {
	target := greeterOnBoth(t)
	t.Run("ssh", func(t *testing.T) {
		port := freePort(t)
		srv := sshd.Start(t, sshd.Config{})
		cmd := srv.SSH("-N", "-o", "ExitOnForwardFailure=yes", "-R", strconv.Itoa(port), "host")
		require.NoError(t, cmd.Start())
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		requireListening(t, port)
		requireAllSocks(t, "tcp", at(port), target)
	})
	t.Run("here", func(t *testing.T) {
		client := toReal(t)
		port := freePort(t)
		socket := filepath.Join(env.ShortDir(t), "far")
		log := newForwardLog()
		forwards := config.Forwards{Remote: specs(t, "RemoteForward", strconv.Itoa(port), "127.0.0.1:0", socket)}
		require.Empty(t, Open(bounded(t), client, forwards, log.events()))
		requireAllSocks(t, "tcp", at(port), target)
		require.Len(t, log.ports, 1)
		requireAllSocks(t, "tcp", at(log.ports[0]), target)
		requireAllSocks(t, "unix", socket, target)
	})
}

func requireListening(t *testing.T, port int) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", at(port))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
}

func TestSocksForTheHostRefuses(t *testing.T) {
	client := toReal(t)
	target := greeterOnBoth(t)
	other := greeterOnBoth(t)
	port := freePort(t)
	log := newForwardLog()
	forwards := config.Forwards{
		Remote:           specs(t, "RemoteForward", strconv.Itoa(port)),
		PermitRemoteOpen: []config.Endpoint{{Host: "127.0.0.1", Port: target}, {Host: "localhost", Port: 1}},
	}
	require.Empty(t, Open(bounded(t), client, forwards, log.events()))
	for _, test := range []struct {
		name, request, answers string
		failure                string // a part of what the user is told
	}{
		{"another port", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + string([]byte{byte(other >> 8), byte(other)}),
			"\x05\x00\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00", fmt.Sprintf("connect to \"[127.0.0.1]:%d\" for the host: not among PermitRemoteOpen", other)},
		{"another name", "\x04\x01" + string([]byte{byte(target >> 8), byte(target)}) + "\x00\x00\x00\x01\x00localhost\x00",
			"\x00\x5b\x00\x00\x00\x00\x00\x00", "not among PermitRemoteOpen"},
		{"nothing there", "\x05\x01\x00\x05\x01\x00\x03\x09localhost\x00\x01",
			"\x05\x00\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00", `connect to "[localhost]:1" for the host: connection refused`},
		{"no SOCKS", "GET / HTTP/1.0\r\n\r\n", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", at(port))
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, test.request)
			require.NoError(t, err)
			answers, _ := io.ReadAll(conn)
			require.Equal(t, test.answers, string(answers))
			if test.failure != "" {
				require.ErrorContains(t, <-log.failed, test.failure)
			}
		})
	}
	require.Empty(t, log.failed)
	conn, err := net.Dial("tcp", at(port))
	require.NoError(t, err)
	defer conn.Close()
	socksTalks(target)["4"].hold(t, conn)
	requireGreetingOn(t, conn)
}

// A client that sends nothing ends with the connection.
func TestSocksForTheHostEndsWithTheLink(t *testing.T) {
	client := toReal(t)
	port := freePort(t)
	forwards := config.Forwards{Remote: specs(t, "RemoteForward", strconv.Itoa(port))}
	require.Empty(t, Open(bounded(t), client, forwards, newForwardLog().events()))
	conn, err := net.Dial("tcp", at(port))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "\x05")
	require.NoError(t, err)
	require.NoError(t, client.Close())
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
}
