//go:build unix

package sshfwd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// requireGone checks that the process whose ID a command has written is gone.
func requireGone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestProxyCommand(t *testing.T) {
	env.Tool(t, "socat")
	srv := sshd.Start(t, sshd.Config{})
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
		requireNoLogin[*config.Error](t, c, nil)
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
		client, err := Dial(dialContext(t), c, DialOptions{Log: env.QuietLog()})
		require.NoError(t, err)
		srv.KillSessions()
		err = client.Wait()
		var lost *link.LostError
		require.ErrorAs(t, err, &lost)
		require.Contains(t, err.Error(), "exit status 5")
		requireGone(t, pid)
		require.NoError(t, client.Close())
	})
}

func TestProxyCommandFails(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
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
			resolved := resolved(t, srv, options...)
			stderr := &lockedBuffer{}
			err := requireNoLogin[*ProxyError](t, resolved, nil, func(o *DialOptions) { o.Stderr = stderr })
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

// A name that means something to a shell does not reach it, wherever it comes from.
func TestProxyCommandNeverSeesAHostileName(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	for _, c := range []config.Config{
		{Hostname: "x;touch " + made}, {Hostname: "$(touch${IFS}" + made + ")"}, {Hostname: "`touch`"}, {Hostname: "-x"}, {Hostname: "a\nb"}, {Hostname: ""},
		{Hostname: "x", OriginalHost: "a|b"}, {Hostname: "x", HostKeyAlias: "a b"},
	} {
		if c.OriginalHost == "" {
			c.OriginalHost = "x"
		}
		c.ProxyCommand, c.Port, c.User = "true %h %n %k", 22, "me"
		requireNoLogin[*config.Error](t, &c, nil)
	}
	require.NoFileExists(t, made)
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
	srv := sshd.Start(t, sshd.Config{})
	self, err := os.Executable()
	require.NoError(t, err)
	helper := "ProxyCommand=env GB_TEST_FDPASS=%h:%p " + self + " -test.run=^TestHelperPassConnection$"
	t.Run("works", func(t *testing.T) {
		requireLogin(t, resolved(t, srv, "ProxyUseFdpass=yes", helper), nil)
	})
	t.Run("is a connection of its own", func(t *testing.T) {
		c := resolved(t, srv, "ProxyUseFdpass=yes", helper, "NoHostAuthenticationForLocalhost=yes", "UserKnownHostsFile=none")
		require.Equal(t, hostkey.Unknown, requireNoLogin[*hostkey.Error](t, c, nil).Reason, "the address of a proxied host is not known")
	})
	pid := filepath.Join(t.TempDir(), "pid")
	for name, c := range map[string]struct{ command, want string }{
		"dies":       {"false", "did not hand over"},
		"hangs":      {"sh -c 'echo $$ >" + pid + "; exec tail -f /dev/null'", "did not hand over"},
		"two":        {strings.TrimPrefix(strings.Replace(helper, "env ", "env GB_TEST_FDPASS_TWICE=1 ", 1), "ProxyCommand="), "2 descriptors"},
		"only bytes": {"echo hello", "0 descriptors"},
	} {
		t.Run(name, func(t *testing.T) {
			resolved := resolved(t, srv, "ProxyUseFdpass=yes", "ConnectTimeout=1", "ProxyCommand="+c.command)
			require.Contains(t, requireNoLogin[*ProxyError](t, resolved, nil).Error(), c.want)
			if strings.Contains(c.command, pid) {
				requireGone(t, pid)
			}
		})
	}
}

// A ProxyCommand that takes no more ends the connection, although it goes on saying nothing:
// what is asked of the host is not waited for until its time is over.
func TestProxyCommandThatTakesNoMore(t *testing.T) {
	bash := env.Tool(t, "bash")
	srv := sshd.Start(t, sshd.Config{})
	pid := filepath.Join(t.TempDir(), "pid")
	relay := `exec 3<>/dev/tcp/%h/%p; cat <&3 & cat >&3 <&0 & writer=$!; exec <&-; echo $writer >` + pid + `; wait`
	client, err := Dial(dialContext(t), resolved(t, srv, "ProxyCommand="+bash+` -c '`+relay+`'`), DialOptions{Log: env.QuietLog()})
	require.NoError(t, err)
	defer client.Close()
	var writer int
	require.Eventually(t, func() bool { // nobody else has the input then
		text, _ := os.ReadFile(pid)
		writer, err = strconv.Atoi(strings.TrimSuffix(string(text), "\n"))
		return err == nil && strings.HasSuffix(string(text), "\n")
	}, linkPatience, 5*time.Millisecond)
	require.NoError(t, syscall.Kill(writer, syscall.SIGKILL))
	require.Eventually(t, func() bool { return syscall.Kill(writer, 0) != nil }, linkPatience, 5*time.Millisecond)

	_, err = client.DialUnix(testContext(t), "/tmp/S.gpg-agent")
	var lost *link.LostError
	require.ErrorAs(t, err, &lost)
	require.ErrorIs(t, client.Wait(), syscall.EPIPE)
}
