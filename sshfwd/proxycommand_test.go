//go:build unix

package sshfwd

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshdtest"
	"gpg-bridge/internal/testenv"
)

// lockedBuffer collects what commands say.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// requireGone: the process whose id a command has written has been waited for.
func requireGone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestProxyCommand(t *testing.T) {
	testenv.Tool(t, "socat")
	srv := sshdtest.Start(t, sshdtest.Config{})
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	t.Run("ends with the connection", func(t *testing.T) {
		requireLogin(t, resolved(t, srv, "ProxyCommand=sh -c 'echo $$ >"+pid+"; exec socat - TCP:%h:%p'"), nil)
		requireGone(t, pid)
	})
	t.Run("does not want to end", func(t *testing.T) {
		command := "sh -c 'echo $$ >" + pid + "; trap \"\" HUP; socat - TCP:%h:%p; exec sleep 600'"
		requireLogin(t, resolved(t, srv, "ProxyCommand="+command), nil)
		requireGone(t, pid)
	})
	t.Run("tokens", func(t *testing.T) {
		said := filepath.Join(dir, "said")
		c := resolved(t, srv, "ProxyCommand=sh -c 'echo %n,%h,%p,%r,%k,%% >"+said+"; exec socat - TCP:%h:%p'")
		requireLogin(t, c, nil)
		text, err := os.ReadFile(said)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("host,127.0.0.1,%d,%s,host,%%\n", srv.Port, srv.User), string(text))
		c = resolved(t, srv, "ProxyCommand=nc %C")
		requireNoLogin[*ConfigError](t, c, nil)
	})
	t.Run("is the user's shell's", func(t *testing.T) {
		shell := filepath.Join(dir, "shell")
		require.NoError(t, os.WriteFile(shell, []byte("#!/bin/sh\necho \"$1 $2\" >"+dir+"/ran\nexec /bin/sh \"$@\"\n"), 0o700))
		t.Setenv("SHELL", shell)
		requireLogin(t, resolved(t, srv, "ProxyCommand=socat - TCP:%h:%p"), nil)
		text, err := os.ReadFile(filepath.Join(dir, "ran"))
		require.NoError(t, err)
		require.Equal(t, "-c exec socat - TCP:127.0.0.1:"+strconv.Itoa(srv.Port)+"\n", string(text))
	})
	t.Run("says why it ends under us", func(t *testing.T) {
		c := resolved(t, srv, "ProxyCommand=sh -c 'echo $$ >"+pid+"; socat - TCP:%h:%p; exit 5'")
		client, err := Dial(dialContext(t), c, nil, quietLog())
		require.NoError(t, err)
		srv.KillSessions()
		err = client.Wait()
		var lost *LostError
		require.ErrorAs(t, err, &lost)
		require.Contains(t, err.Error(), "exit status 5")
		requireGone(t, pid)
		require.NoError(t, client.Close())
	})
}

func TestProxyCommandFails(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	pid := filepath.Join(t.TempDir(), "pid")
	for _, c := range []struct {
		name, command, want, said string
		option                    string
	}{
		{name: "dies at once", command: "sh -c 'echo $$ >" + pid + "; echo oops >&2; exit 3'", want: "it ended with exit status 3", said: "oops\n"},
		{name: "does not exist", command: "/nonexistent %h", want: "it ended with exit status 127", said: "nonexistent"},
		{name: "ends well, too early", command: "true", want: "no SSH connection"},
		{name: "closes its output", command: "sh -c 'echo $$ >" + pid + "; exec sleep 600 >&-'", want: "no SSH connection"},
		{name: "hangs", command: "sh -c 'echo $$ >" + pid + "; exec tail -f /dev/null'", want: ErrNoAnswer.Error(), option: "ConnectTimeout=1"},
		{name: "garbage", command: "sh -c 'echo $$ >" + pid + "; head -c 100000 /dev/urandom; exec cat'", want: "no SSH connection"},
		{name: "garbage in a line", command: "printf 'SSH-1.5-\\033[31mx\\r\\n'", want: "no SSH connection"},
		{name: "garbage without end", command: "sh -c 'echo $$ >" + pid + "; exec yes'", want: "no SSH connection", option: "ConnectTimeout=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := []string{"ProxyCommand=" + c.command}
			if c.option != "" {
				options = append(options, c.option)
			}
			config := resolved(t, srv, options...)
			stderr := &lockedBuffer{}
			config.Stderr = stderr
			err := requireNoLogin[*ProxyError](t, config, nil)
			require.Contains(t, err.Error(), c.want)
			require.NotContains(t, err.Error(), "\x1b")
			require.Contains(t, stderr.String(), c.said)
			if strings.Contains(c.command, pid) {
				requireGone(t, pid)
			}
		})
	}
	t.Run("no shell", func(t *testing.T) {
		t.Setenv("SHELL", "/nonexistent/shell")
		require.ErrorIs(t, requireNoLogin[*ProxyError](t, resolved(t, srv, "ProxyCommand=true"), nil), os.ErrNotExist)
	})
}

// A name that means something to a shell does not get there, wherever it comes
// from.
func TestProxyCommandNeverSeesAHostileName(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	for _, c := range []Config{
		{Hostname: "x;touch " + made}, {Hostname: "$(touch${IFS}" + made + ")"}, {Hostname: "`touch`"}, {Hostname: "-x"}, {Hostname: "a\nb"}, {Hostname: ""},
		{Hostname: "x", OriginalHost: "a|b"}, {Hostname: "x", HostKeyAlias: "a b"},
	} {
		if c.OriginalHost == "" {
			c.OriginalHost = "x"
		}
		c.ProxyCommand, c.Port, c.User = "true %h %n %k", 22, "me"
		requireNoLogin[*ConfigError](t, &c, nil)
	}
	require.NoFileExists(t, made)
}

func TestValidNames(t *testing.T) {
	for _, o := range []Options{
		{Destination: "web"}, {Destination: "web_1.example.com"}, {Destination: "::1"}, {Destination: "fe80::1%eth0"}, {Destination: "ssh://me@[::1]:22"},
		{Destination: "me@web"}, {Destination: `CORP\me@web`}, {Destination: "a$b@web"}, {Destination: "web", User: "me+x@corp"}, {Destination: "ssh://a%20b@web"},
		{Destination: "web", Options: []string{"User=me", "ProxyCommand=a;b"}},
	} {
		require.NoError(t, o.check(), o)
	}
	for _, o := range []Options{
		{Destination: "we'b"}, {Destination: "we`b"}, {Destination: `we"b`}, {Destination: "we$b"}, {Destination: `we\b`}, {Destination: "we;b"},
		{Destination: "we&b"}, {Destination: "a<b"}, {Destination: "a>b"}, {Destination: "a|b"}, {Destination: "a(b"}, {Destination: "a{b"}, {Destination: "a,b"},
		{Destination: "x@-web"}, {Destination: "x@"}, {Destination: "ssh://"}, {Destination: "a;b@web"}, {Destination: "web", User: "-x"}, {Destination: "web", User: "a -x"},
		{Destination: "web", User: `me\`}, {Destination: "web", User: "a\x01"}, {Destination: "ssh://a%3bb@web"}, {Destination: "web", Options: []string{" user = a;b"}},
	} {
		require.Error(t, o.check(), o)
	}
}

// TestHelperPassConnection is no test: as a ProxyCommand it connects and hands
// the socket over.
func TestHelperPassConnection(t *testing.T) {
	addr := os.Getenv("GB_TEST_FDPASS")
	if addr == "" {
		return
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		os.Exit(9)
	}
	file, _ := conn.(*net.TCPConn).File()
	rights := syscall.UnixRights(int(file.Fd()))
	if os.Getenv("GB_TEST_FDPASS_TWICE") != "" {
		rights = syscall.UnixRights(int(file.Fd()), int(file.Fd()))
	}
	if syscall.Sendmsg(1, []byte{0}, rights, nil, 0) != nil {
		os.Exit(9)
	}
	os.Exit(0)
}

func TestProxyUseFdpass(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	self, err := os.Executable()
	require.NoError(t, err)
	helper := "ProxyCommand=env GB_TEST_FDPASS=%h:%p " + self + " -test.run=^TestHelperPassConnection$"
	t.Run("works", func(t *testing.T) {
		requireLogin(t, resolved(t, srv, "ProxyUseFdpass=yes", helper), nil)
	})
	t.Run("is a connection of its own", func(t *testing.T) {
		c := resolved(t, srv, "ProxyUseFdpass=yes", helper, "NoHostAuthenticationForLocalhost=yes", "UserKnownHostsFile=none")
		require.Equal(t, KeyUnknown, requireNoLogin[*HostKeyError](t, c, nil).Reason, "the address of a proxied host is not known")
	})
	pid := filepath.Join(t.TempDir(), "pid")
	for name, c := range map[string]struct{ command, want string }{
		"dies":       {"false", "did not hand over"},
		"hangs":      {"sh -c 'echo $$ >" + pid + "; exec tail -f /dev/null'", "did not hand over"},
		"two":        {strings.TrimPrefix(strings.Replace(helper, "env ", "env GB_TEST_FDPASS_TWICE=1 ", 1), "ProxyCommand="), "2 descriptors"},
		"only bytes": {"echo hello", "0 descriptors"},
	} {
		t.Run(name, func(t *testing.T) {
			config := resolved(t, srv, "ProxyUseFdpass=yes", "ConnectTimeout=1", "ProxyCommand="+c.command)
			require.Contains(t, requireNoLogin[*ProxyError](t, config, nil).Error(), c.want)
			if strings.Contains(c.command, pid) {
				requireGone(t, pid)
			}
		})
	}
}
