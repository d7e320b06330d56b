package sshmaster

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshflags"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/sshfwd/config"
)

func lineOf(t *testing.T, args ...string) sshflags.Line {
	t.Helper()
	line, err := sshflags.Parse(args, nil)
	require.NoError(t, err)
	return line
}

// settings are what ssh makes of arguments.
func settings(t *testing.T, args []string) map[string]string {
	t.Helper()
	out, err := exec.Command(env.Tool(t, "ssh"), append([]string{"-G"}, args...)...).Output()
	require.NoError(t, err, "%q", args)
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[key] += value + ";"
	}
	return found
}

// ssh makes the same of the words for the log-in and for the session as of the user's, but for
// what makes them that.
func TestArguments(t *testing.T) {
	const path = `/run/a b%c"d\e/m`
	for _, args := range [][]string{
		{"host"},
		{"-X", "-A", "-p22", "me@host", "-l", "you", "true", "-f"},
		{"-M", "-S", "/tmp/x", "-tt", "-oControlMaster=ask", "-oControlPersist=no", "host", "--", "ls", "-S"},
		{"-fN", "-L", "1234:h:1", "-oForkAfterAuthentication=yes", "host"},
		{"-s", "-MM", "host", "-T", "sftp"},
		{"-R", "9:h:9", "-D", "8", "-C", "-oSessionType=subsystem", "--", "host", "-x"},
	} {
		line := lineOf(t, append([]string{"-F", "none"}, args...)...)
		o := Options{Line: line, Config: &config.Config{}}
		if line.Has('f') {
			o.Config.Lacks = []config.Lack{{Keyword: config.Fork}}
		}
		user := settings(t, line.Args)
		login, session := settings(t, o.loginArgs(path)), settings(t, o.sessionArgs(path, false))
		require.Equal(t, "none;", login["sessiontype"], args)
		require.Equal(t, "auto;", login["controlmaster"], args)
		require.Equal(t, "10;", login["controlpersist"], args)
		require.Equal(t, "no;", login["forkafterauthentication"], args)
		require.Equal(t, user["stdinnull"], session["stdinnull"], args)
		require.Equal(t, "false;", session["controlmaster"], args)
		require.Equal(t, path+";", login["controlpath"], args)
		require.Equal(t, path+";", session["controlpath"], args)
		require.Equal(t, "yes;", session["clearallforwardings"], args)
		require.Equal(t, "false;", session["proxycommand"], "%q: it makes no other connection", args)
		for key, value := range user {
			switch key {
			case "sessiontype", "controlmaster", "controlpersist", "controlpath", "forkafterauthentication", "requesttty", "stdinnull":
			default:
				require.Equal(t, value, login[key], "%q: %s of the log-in", args, key)
			}
			switch key {
			case "controlmaster", "controlpersist", "controlpath", "clearallforwardings", "localforward", "remoteforward", "dynamicforward", "proxycommand":
			default:
				require.Equal(t, value, session[key], "%q: %s of the session", args, key)
			}
		}
		require.Equal(t, line.Command, lineOf(t, o.sessionArgs(path, false)...).Command, args)
		require.Empty(t, lineOf(t, o.loginArgs(path)...).Command, args)
	}
}

// A way through our own proxy is replaced; the user's own is left to ssh.
func TestRoute(t *testing.T) {
	for _, test := range []struct {
		route     Route
		key, want string
	}{
		{Route{}, "proxycommand", "/p %h;"},
		{Route{Replace: true}, "proxycommand", ""},
		{Route{Replace: true, ProxyCommand: "nc %h %p"}, "proxycommand", "nc %h %p;"},
		{Route{Replace: true, ProxyJump: "a,b"}, "proxyjump", "a,b;"},
	} {
		o := Options{Line: lineOf(t, "-F", "none", "-oProxyCommand=/p %h", "host"), Config: &config.Config{}, Route: test.route}
		require.Equal(t, test.want, settings(t, o.loginArgs("/c"))[test.key], "%+v", test.route)
	}
}

// A changed host key is not accepted for a bridge, whatever StrictHostKeyChecking is.
func TestChangedKeysAreRefused(t *testing.T) {
	for strict, want := range map[string]string{"no": "accept-new;", "yes": "true;", "ask": "ask;", "accept-new": "accept-new;"} {
		line := lineOf(t, "-F", "none", "-oStrictHostKeyChecking="+strict, "host")
		c, err := config.Resolve(t.Context(), config.Options{Destination: "host", Words: line.Asking()})
		require.NoError(t, err)
		o := Options{Line: line, Config: c}
		require.Equal(t, want, settings(t, o.loginArgs("/c"))["stricthostkeychecking"], strict)
		require.Equal(t, want, settings(t, o.sessionArgs("/c", true))["stricthostkeychecking"], strict)
	}
}
