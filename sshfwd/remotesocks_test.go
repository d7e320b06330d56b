package sshfwd

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshdtest"
	"gpg-bridge/internal/testenv"
)

// A socksTalk is what a client says, and what it is to be answered.
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
		srv := sshdtest.Start(t, sshdtest.Config{})
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
		client := realLink(t)
		port := freePort(t)
		socket := filepath.Join(testenv.ShortDir(t), "far")
		log := newForwardLog()
		forwards := ForwardSpecs{Remote: specs(t, "RemoteForward", strconv.Itoa(port), "127.0.0.1:0", socket)}
		require.Empty(t, client.OpenForwards(testContext(t), forwards, log.events()))
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
	}, linkPatience, 10*time.Millisecond)
}

func TestSocksForTheHostRefuses(t *testing.T) {
	client := realLink(t)
	target := greeterOnBoth(t)
	other := greeterOnBoth(t)
	port := freePort(t)
	log := newForwardLog()
	forwards := ForwardSpecs{
		Remote:           specs(t, "RemoteForward", strconv.Itoa(port)),
		PermitRemoteOpen: []Endpoint{{Host: "127.0.0.1", Port: target}, {Host: "localhost", Port: 1}},
	}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, log.events()))
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

// A client that says nothing ends with the connection.
func TestSocksForTheHostEndsWithTheLink(t *testing.T) {
	client := realLink(t)
	port := freePort(t)
	forwards := ForwardSpecs{Remote: specs(t, "RemoteForward", strconv.Itoa(port))}
	require.Empty(t, client.OpenForwards(testContext(t), forwards, newForwardLog().events()))
	conn, err := net.Dial("tcp", at(port))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "\x05")
	require.NoError(t, err)
	require.NoError(t, client.Close())
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestPermitRemoteOpen(t *testing.T) {
	for value, want := range map[string][]Endpoint{
		"":                  nil,
		"any":               nil,
		"none":              {},
		"a:1 *:22":          {{Host: "a", Port: 1}, {Host: "*", Port: 22}},
		"[::1]:80 b:*":      {{Host: "::1", Port: 80}, {Host: "b"}},
		" 192.0.2.1:65535 ": {{Host: "192.0.2.1", Port: 65535}},
	} {
		got, err := parsePermitRemoteOpen(value)
		require.NoError(t, err, value)
		require.Equal(t, want, got, value)
	}
	for _, value := range []string{"a", "a:", ":1", "a:0", "a:65536", "a:b", "a:1:2", "any none", "[::1:80"} {
		_, err := parsePermitRemoteOpen(value)
		var config *ConfigError
		require.ErrorAs(t, err, &config, value)
	}
	for _, test := range []struct {
		value  string
		target Endpoint
		want   bool
	}{
		{"any", Endpoint{Host: "a", Port: 1}, true},
		{"none", Endpoint{Host: "a", Port: 1}, false},
		{"a:1", Endpoint{Host: "a", Port: 1}, true},
		{"a:1", Endpoint{Host: "A", Port: 1}, false},
		{"a:1", Endpoint{Host: "a", Port: 2}, false},
		{"a:*", Endpoint{Host: "a", Port: 2}, true},
		{"b:* *:1", Endpoint{Host: "a", Port: 1}, true},
		{"[::1]:1", Endpoint{Host: "::1", Port: 1}, true},
	} {
		permitted, err := parsePermitRemoteOpen(test.value)
		require.NoError(t, err)
		require.Equal(t, test.want, ForwardSpecs{PermitRemoteOpen: permitted}.permits(test.target), "%+v", test)
	}
}
