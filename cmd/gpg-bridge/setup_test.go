package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testenv"
)

// A setupStage is an ssh_config that is not the user's own.
type setupStage struct {
	t    *testing.T
	file string
}

func newSetupStage(t *testing.T, text string) *setupStage {
	t.Helper()
	testenv.Tool(t, "ssh")
	s := &setupStage{t, filepath.Join(t.TempDir(), "config")}
	s.write(text)
	return s
}

func (s *setupStage) write(text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.file, []byte(text), 0o600))
}

func (s *setupStage) read() string {
	s.t.Helper()
	data, err := os.ReadFile(s.file)
	require.NoError(s.t, err)
	return string(data)
}

// run runs gpg-bridge setup, which must succeed, and returns what it said.
func (s *setupStage) run(args ...string) (stdout, stderr string) {
	s.t.Helper()
	code, stdout, stderr := runMain(s.t, "", append([]string{"setup", "-F", s.file}, args...)...)
	require.Zero(s.t, code, stderr)
	return stdout, stderr
}

// refuses: nothing is changed, nothing is left, and the user is told.
func (s *setupStage) refuses(want string, args ...string) {
	s.t.Helper()
	before := s.read()
	code, stdout, stderr := runMain(s.t, "", append([]string{"setup", "-F", s.file}, args...)...)
	require.Equal(s.t, 1, code)
	require.Empty(s.t, stdout)
	require.Contains(s.t, stderr, want)
	require.Equal(s.t, 2, strings.Count(stderr, "\n"), "%s", stderr)
	require.Equal(s.t, before, s.read())
}

// ours are the lines of ours for a host as ssh sees the file, without what is
// the same in each.
func (s *setupStage) proxy(host string) string {
	s.t.Helper()
	is, err := asker{path: s.file}.settings(s.t.Context(), []byte(s.read()), host)
	require.NoError(s.t, err)
	program, err := programName()
	require.NoError(s.t, err)
	line := is.get("proxycommand")
	line, found := strings.CutPrefix(line, quoteWord(program, runtime.GOOS)+" proxy -F "+quoteWord(s.file, runtime.GOOS)+" ")
	require.True(s.t, found, is.get("proxycommand"))
	line, found = strings.CutSuffix(line, "--alias %n --user %r %h %p")
	require.True(s.t, found, is.get("proxycommand"))
	return strings.TrimSuffix(line, " ")
}

func TestSetup(t *testing.T) {
	const before = "User me\nHost dev\n  HostName dev.example.org\nHost lab\n  ProxyJump root@gate:2222\n"
	s := newSetupStage(t, before)

	diff, said := s.run("--dry-run", "dev")
	require.Equal(t, before, s.read())
	require.Empty(t, said)
	shown, said := s.run("dev")
	require.Equal(t, diff, shown)
	require.Contains(t, said, "is changed; your own lines are also in")
	require.Regexp(t, `^--- .*\n\+\+\+ .*\n@@ -1,3 \+1,9 @@\n\+# gpg-bridge: begin\n`, diff)
	require.True(t, strings.HasSuffix(s.read(), "# gpg-bridge: end\n"+before))
	require.Empty(t, s.proxy("dev"))

	after := s.read()
	shown, said = s.run("dev")
	require.Empty(t, shown)
	require.Contains(t, said, "nothing to change in")
	require.Equal(t, after, s.read())

	_, said = s.run("lab", "third", "lab")
	require.Contains(t, said, "gpg-bridge: lab is now reached through root@gate:2222; run setup again when that changes\n")
	require.Equal(t, 1, strings.Count(s.read(), "Host third\n"))
	require.Equal(t, "-J root@gate:2222", s.proxy("lab"))
	_, said = s.run("lab", "dev", "third")
	require.Regexp(t, "^gpg-bridge: nothing to change in .*\n$", said)

	s.run("--undo", "lab", "third")
	require.Equal(t, after, s.read())
	_, said = s.run("--undo", "lab")
	require.Contains(t, said, "no line of gpg-bridge for lab")
	s.run("--undo")
	require.Equal(t, before, s.read())
	backup, err := os.ReadFile(s.file + ".gpg-bridge.bak")
	require.NoError(t, err)
	require.Equal(t, before, string(backup))
	entries, err := os.ReadDir(filepath.Dir(s.file))
	require.NoError(t, err)
	require.Len(t, entries, 2, "one copy, since the user's own lines were the same")
}

// How a host is reached stays as it is.
func TestSetupKeepsTheWay(t *testing.T) {
	for _, c := range []struct {
		name, before string
		args         []string
		want         string
	}{
		{"none", "Host dev\n  ProxyCommand none\n", nil, ""},
		{"a jump host", "Match host dev\n  ProxyJump a,b@[::1]:33\n", nil, "-J 'a,b@[::1]:33'"},
		{"a jump host with a token", "ProxyJump %h-gate\n", nil, "-J %h-gate"},
		{"a command", "ProxyCommand nc -X 5 -x %h:1080 %h %p\n", nil, "--via 'nc -X 5 -x %h:1080 %h %p'"},
		{"quotes", "ProxyCommand ssh -W '[%h]:%p' gate\n", nil, `--via "ssh -W '[%h]:%p' gate"`},
		{"other quotes", "ProxyCommand sh -c \"exec nc %h %p\"\n", nil, `--via 'sh -c "exec nc %h %p"'`},
		{"both quotes", "ProxyCommand sh -c \"nc '%h' %p\" # 100%%\n", nil, `--via 'sh -c "nc '"'"'%h'"'"' %p" # 100%%'`},
		{"fdpass is not ours", "ProxyUseFdpass yes\n", nil, ""},
		{"named here", "ProxyJump gate\n", []string{"--via", "nc %h %p"}, "--via 'nc %h %p'"},
		{"named here, too", "ProxyCommand nc %h %p\n", []string{"-J", "gate"}, "-J gate"},
		{"not wanted", "ProxyJump gate\n", []string{"-J", "none"}, ""},
		{"other flags", "", []string{"--keys", "A B,100%", "--takeover", "--linger", "5m"}, "--keys 'A B,100%%' --linger 5m0s --takeover"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSetupStage(t, c.before)
			s.run(append(c.args, "dev")...)
			require.Equal(t, c.want, s.proxy("dev"))
			is, err := asker{path: s.file}.settings(t.Context(), []byte(s.read()), "dev")
			require.NoError(t, err)
			require.False(t, is.on("proxyusefdpass"))
			after := s.read()
			s.run(append(c.args, "dev")...)
			require.Equal(t, after, s.read())
			s.run("--undo")
			require.Equal(t, c.before, s.read())
		})
	}
}

// What a user made of our line, and what was asked for before, is kept.
func TestSetupKeepsFlags(t *testing.T) {
	s := newSetupStage(t, "")
	s.run("--fdpass", "dev")
	require.Contains(t, s.read(), "ProxyUseFdpass yes")
	s.write(strings.Replace(s.read(), " --alias", " --keys none --agent-socket '/tmp/a b' --alias", 1))
	s.run("dev")
	require.Equal(t, "--agent-socket '/tmp/a b' --keys none", s.reordered("dev"))
	require.Contains(t, s.read(), "ProxyUseFdpass yes")
	s.run("--keys", "K", "--fdpass=false", "dev")
	require.Equal(t, "--agent-socket '/tmp/a b' --keys K", s.reordered("dev"))
	require.NotContains(t, s.read(), "ProxyUseFdpass")
	s.write(strings.Replace(s.read(), " --alias", " --nonsense --alias", 1))
	s.run("dev")
	require.Empty(t, s.proxy("dev"))
}

// reordered is proxy, where the flags come before that of the file.
func (s *setupStage) reordered(host string) string {
	s.t.Helper()
	is, err := asker{path: s.file}.settings(s.t.Context(), []byte(s.read()), host)
	require.NoError(s.t, err)
	_, line, _ := strings.Cut(is.get("proxycommand"), " proxy ")
	line = strings.Replace(line, "-F "+quoteWord(s.file, runtime.GOOS)+" ", "", 1)
	return strings.TrimSuffix(line, " --alias %n --user %r %h %p")
}

func TestSetupKeepsCanonicalNames(t *testing.T) {
	s := newSetupStage(t, "Host lab\n  CanonicalizeHostname no\nHost *\n  CanonicalizeHostname yes\n  CanonicalizeMaxDots 0\n")
	s.run("d.e.v", "lab")
	require.Contains(t, s.read(), "Host d.e.v\n    "+"ProxyCommand")
	require.Equal(t, 1, strings.Count(s.read(), "    CanonicalizeHostname always\n"))
	_, said := s.run("d.e.v", "lab")
	require.Contains(t, said, "nothing to change")
}

func TestSetupRefuses(t *testing.T) {
	t.Run("what ssh does not read", func(t *testing.T) {
		s := newSetupStage(t, "Host dev\n  Nonsense 1\n")
		s.refuses(s.file+`: line 2: Bad configuration option: nonsense`, "dev")
	})
	t.Run("an fdpass command", func(t *testing.T) {
		newSetupStage(t, "ProxyUseFdpass yes\nProxyCommand nc -F %h %p\n").refuses("hands its socket over", "dev")
	})
	t.Run("fdpass through a hop", func(t *testing.T) {
		newSetupStage(t, "ProxyJump gate\n").refuses("it is reached through gate", "--fdpass", "dev")
	})
	t.Run("quotes that cannot be kept", func(t *testing.T) {
		newSetupStage(t, "ProxyCommand x \\'y\n").refuses("ssh does not accept the configuration", "dev")
	})
	t.Run("lines above the block", func(t *testing.T) {
		s := newSetupStage(t, "User me\n")
		s.run("dev")
		s.write("Host dev\n  ProxyCommand nc %h %p\n" + s.read())
		s.refuses("come before ours", "dev")
	})
	t.Run("marks", func(t *testing.T) {
		s := newSetupStage(t, "# gpg-bridge: begin\n")
		s.refuses("do not match", "dev")
		s.refuses("do not match", "--undo")
	})
	t.Run("without ssh", func(t *testing.T) {
		s := newSetupStage(t, "User me\n")
		s.run("dev")
		t.Setenv("PATH", t.TempDir())
		s.refuses("there is no ssh", "lab")
		s.run("--undo")
		require.Equal(t, "User me\n", s.read())
	})
}

// A hand-written line is as good as ours, and is not put behind another one.
func TestSetupLeavesALineOfTheUsers(t *testing.T) {
	s := newSetupStage(t, "Host dev\n  ProxyCommand exec /opt/gpg-bridge proxy --alias %n %h %p\n")
	before := s.read()
	_, said := s.run("dev")
	require.Contains(t, said, "from another line of yours")
	require.Equal(t, before, s.read())
}

// A file that somebody broke after us can still be rid of our lines.
func TestSetupUndoesInABrokenFile(t *testing.T) {
	s := newSetupStage(t, "User me\n")
	s.run("dev")
	s.write(s.read() + "Nonsense 1\n")
	s.run("--undo")
	require.Equal(t, "User me\nNonsense 1\n", s.read())

	s = newSetupStage(t, "")
	s.run("dev")
	s.write(strings.Replace(s.read(), "Host *\n", "Host *\nUser me\n", 1))
	_, said := s.run("--undo")
	require.Contains(t, said, "somebody else's lines stay")
	require.Contains(t, s.read(), "Host *\nUser me\n# gpg-bridge: end\n")
}

func TestSetupMakesTheFileAndRemovesIt(t *testing.T) {
	s := newSetupStage(t, "")
	require.NoError(t, os.Remove(s.file))
	s.run("-n", "dev")
	require.NoFileExists(t, s.file)
	_, said := s.run("dev")
	require.NotContains(t, said, "your own lines")
	require.Empty(t, s.proxy("dev"))
	s.run("--undo")
	require.NoFileExists(t, s.file)
	_, said = s.run("--undo")
	require.Contains(t, said, "nothing to change")
	entries, err := os.ReadDir(filepath.Dir(s.file))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestSetupUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"me@dev"}, {"d*"}, {""}, {"--", "-x"}, {"--undo", "--service"}, {"-F", "none", "dev"}, {"--user", "me", "dev"},
		{"--alias", "x", "dev"}, {"-J", "a", "--via", "b", "dev"}, {"--service=upstart", "dev"}, {"--service=launchd"},
		{"--service=launchd", "a", "b"}, {"--nonsense", "dev"},
	} {
		code, stdout, stderr := runMain(t, "", append([]string{"setup"}, args...)...)
		require.Equal(t, 2, code, "%s: %s", args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "see gpg-bridge setup --help")
	}
}
