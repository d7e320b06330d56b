package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzForwardSpec: a forward that is understood has two valid ends, is the same one when
// read back in the notation of ssh -G, and the same one with spaces around it.
func FuzzForwardSpec(f *testing.F) {
	for _, seed := range []string{"8080:host:80", "8080 [::1]:80", "*:1 /sock", "/a/b:/c", "0", "[/x:y]:z:1", `/a\:b:c:1`, "socks", "1:socks:0"} {
		for kind := range uint8(3) {
			f.Add(kind, seed)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, value string) {
		keyword := []string{"LocalForward", "RemoteForward", "DynamicForward"}[kind%3]
		spec, err := ParseForward(keyword, value)
		if err != nil {
			require.Zero(t, spec)
			return
		}
		checkEndpoint(t, spec.Listen)
		require.True(t, keyword == "RemoteForward" || spec.Listen.Path != "" || spec.Listen.Port > 0)
		if keyword == "DynamicForward" {
			require.Zero(t, spec.Connect)
		}
		if spec.Connect != (Endpoint{}) {
			checkEndpoint(t, spec.Connect)
			require.True(t, spec.Connect.Path != "" || spec.Connect.Host != "" && spec.Connect.Port > 0)
		}
		again, err := ParseForward(keyword, " "+value+"\t")
		require.NoError(t, err)
		require.Equal(t, spec, again)
		if written := printForward(spec, keyword); written != "" {
			again, err = ParseForward(keyword, written)
			require.NoError(t, err, "%q, of %q", written, value)
			require.Equal(t, spec, again, "%q", written)
		}
	})
}

func checkEndpoint(t *testing.T, e Endpoint) {
	require.True(t, e.Path == "" || e.Path[0] == '/' && e.Host == "" && e.Port == 0, "%+v", e)
	require.GreaterOrEqual(t, e.Port, 0)
	require.LessOrEqual(t, e.Port, 65535)
}

// printForward writes a forward as ssh -G does (dump_cfg_forwards), or "" where
// that cannot be read back.
func printForward(s ForwardSpec, keyword string) string {
	if strings.ContainsAny(s.Listen.Path+s.Connect.Path+s.Listen.Host+s.Connect.Host, " \t\r\n\v\f\\:[]") ||
		strings.ContainsFunc(s.Listen.Path+s.Connect.Path+s.Listen.Host+s.Connect.Host, func(r rune) bool { return r > 0x7e }) ||
		strings.HasPrefix(s.Listen.Host+s.Connect.Host, "/") {
		return ""
	}
	if s.Connect == (Endpoint{}) && keyword != "LocalForward" {
		return s.Listen.String()
	}
	return s.Listen.String() + " " + s.Connect.String()
}

// FuzzSettings: what ssh -G might print makes a configuration that can be used,
// or an error.
func FuzzSettings(f *testing.F) {
	f.Add("host h\nhostname example.org\nuser me\nport 22\nidentityfile ~/.ssh/id\nlocalforward 1 [a]:2\nserveraliveinterval 15\n")
	f.Add("hostname h\nuser u\nport 70000\nconnecttimeout none\nstreamlocalbindmask 0777\nforwardagent $X\naddkeystoagent confirm 5m\n")
	f.Fuzz(func(t *testing.T, out string) {
		c, err := newConfig(To("h"), parseSettings([]byte(out)), Settings{})
		if err != nil {
			return
		}
		require.NotEmpty(t, c.Hostname)
		require.NotEmpty(t, c.User)
		require.Contains(t, []Strictness{StrictAsk, StrictYes, StrictAcceptNew, StrictNo}, c.StrictHostKeyChecking)
		require.Contains(t, []string{"auto", "no", "yes", "force"}, c.RequestTTY)
		require.LessOrEqual(t, c.Forwards.StreamLocalBindMask.Perm(), c.Forwards.StreamLocalBindMask)
		require.True(t, 0 < c.Port && c.Port < 1<<16)
		for _, number := range []int{c.RequiredRSASize, c.NumberOfPasswordPrompts, c.ServerAliveCountMax, int(c.ConnectTimeout), int(c.ServerAliveInterval)} {
			require.GreaterOrEqual(t, number, 0)
		}
		for _, spec := range slices.Concat(c.Forwards.Local, c.Forwards.Remote, c.Forwards.Dynamic) {
			checkEndpoint(t, spec.Listen)
			checkEndpoint(t, spec.Connect)
		}
	})
}

// forShell are the characters that must not reach a shell in a name, taken from the
// manual, not from the code.
var forShell = regexp.MustCompile("[\\x00-\\x20\\x7f'`\"$\\\\;&<>|(){},]")

// FuzzProxyCommand: what a shell gets to read is the user's command with the
// tokens replaced, each by the name it stands for, and by no name that could
// mean anything to that shell.
func FuzzProxyCommand(f *testing.F) {
	f.Add("nc -X 5 %h %p", "host", "alias", "me", "")
	f.Add("%n%%h%k %r", "h", "a;b", "$(x)", "key")
	f.Fuzz(func(t *testing.T, command, host, alias, user, keyAlias string) {
		c := &Config{ProxyCommand: command, Hostname: host, OriginalHost: alias, User: user, HostKeyAlias: keyAlias, Port: 2222}
		got, err := c.ProxyCommandLine()
		if err != nil {
			return
		}
		for _, name := range []string{host, alias, keyAlias} {
			require.NotRegexp(t, forShell, name)
			require.False(t, strings.HasPrefix(name, "-"))
		}
		if keyAlias == "" {
			keyAlias = alias
		}
		want := regexp.MustCompile(`(?s)%.`).ReplaceAllStringFunc(command, func(token string) string {
			return map[string]string{"%%": "%", "%h": host, "%k": keyAlias, "%n": alias, "%p": "2222", "%r": user}[token]
		})
		require.Equal(t, want, got)
	})
}

// FuzzDestination: the names of an accepted destination mean nothing to a shell, and are
// those that it spells out. The same goes for a jump host, which is also read back as the
// same one.
func FuzzDestination(f *testing.F) {
	for _, seed := range []string{"me@host", "ssh://me@[::1]:22/", "a@b@c", "host:22", "[::1]:5", "ssh://host", "-oProxyCommand=x", "me%40x@h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := To(text)
		user, host := o.userAndHost()
		if o.checkNames() == nil {
			require.NotRegexp(t, forShell, host)
			require.NotRegexp(t, "[\\x00-\\x1f\\x7f'`\";&<>|(){}]|^-| -", user)
			require.NotEmpty(t, host)
			require.False(t, strings.HasPrefix(host, "-"))
		}
		user, host, port, ok := parseJumpHost(text)
		if !ok {
			return
		}
		require.NotEmpty(t, host)
		require.True(t, 0 <= port && port < 1<<16)
		if strings.ContainsAny(host, "[]@") || host != strings.TrimSpace(host) || user != strings.TrimSpace(user) || strings.HasPrefix(user, "ssh://") {
			return
		}
		written := "[" + host + "]"
		if user != "" {
			written = user + "@" + written
		}
		if port != 0 {
			written += ":" + strconv.Itoa(port)
		}
		userAgain, hostAgain, portAgain, ok := parseJumpHost(written)
		require.True(t, ok, "%q", written)
		require.Equal(t, fmt.Sprint(user, host, port), fmt.Sprint(userAgain, hostAgain, portAgain))
	})
}

// FuzzArguments: quoted words come out as they went in, and no text yields more
// characters than it has.
func FuzzArguments(f *testing.F) {
	f.Add(`cmd "a b" 'c d' \"e\ f`, "x'y", `z"\`)
	f.Fuzz(func(t *testing.T, text, first, second string) {
		words, err := SplitArguments(text)
		if err == nil {
			require.LessOrEqual(t, len(strings.Join(words, "")), len(text))
		}
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `'`, `\'`)
		words, err = SplitArguments(` "` + quoted.Replace(first) + "\"\t '" + quoted.Replace(second) + "' ")
		require.NoError(t, err)
		require.Equal(t, []string{first, second}, words)
	})
}
