package setup

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/ui"
)

// A testConfig is an ssh_config that is not the user's own.
type testConfig struct {
	t    *testing.T
	file string
}

func newTestConfig(t *testing.T, text string) *testConfig {
	t.Helper()
	env.Tool(t, "ssh")
	s := &testConfig{t, filepath.Join(t.TempDir(), "config")}
	s.write(text)
	return s
}

func (s *testConfig) write(text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.file, []byte(text), 0o600))
}

func (s *testConfig) read() string {
	s.t.Helper()
	data, err := os.ReadFile(s.file)
	require.NoError(s.t, err)
	return string(data)
}

// runSetup does what gpg-bridge setup does with these arguments, and returns how the
// program would end.
func runSetup(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	user := ui.New(strings.NewReader(""), &out, &errOut)
	var options Options
	flags := pflag.NewFlagSet("setup", pflag.ContinueOnError)
	options.AddFlags(flags)
	require.NoError(t, flags.Parse(args))
	err := options.Check(flags.Args())
	if err == nil {
		err = Run(t.Context(), user, &options, flags.Args())
	}
	return user.ExitCode(err), out.String(), errOut.String()
}

// run runs gpg-bridge setup, which must succeed, and returns what it said.
func (s *testConfig) run(args ...string) (stdout, stderr string) {
	s.t.Helper()
	code, stdout, stderr := runSetup(s.t, append([]string{"-F", s.file}, args...)...)
	require.Zero(s.t, code, stderr)
	return stdout, stderr
}

// refuses: nothing is changed, nothing is left, and the user is told.
func (s *testConfig) refuses(want string, args ...string) {
	s.t.Helper()
	before := s.read()
	code, stdout, stderr := runSetup(s.t, append([]string{"-F", s.file}, args...)...)
	require.Equal(s.t, 1, code)
	require.Empty(s.t, stdout)
	require.Contains(s.t, stderr, want)
	require.Equal(s.t, 2, strings.Count(stderr, "\n"), "%s", stderr)
	require.Equal(s.t, before, s.read())
}

// proxy returns our ProxyCommand for a host as ssh reads it, without the words that are
// the same in each.
func (s *testConfig) proxy(host string) string {
	s.t.Helper()
	is, err := evaluator{path: s.file}.settings(s.t.Context(), []byte(s.read()), host)
	require.NoError(s.t, err)
	program, err := programPath()
	require.NoError(s.t, err)
	line := is.Text("proxycommand")
	line, found := strings.CutPrefix(line, quoteWord(program, runtime.GOOS)+" proxy -F "+quoteWord(s.file, runtime.GOOS)+" ")
	require.True(s.t, found, is.Text("proxycommand"))
	line, found = strings.CutSuffix(line, "--alias %n --user %r %h %p")
	require.True(s.t, found, is.Text("proxycommand"))
	return strings.TrimSuffix(line, " ")
}

func TestSetup(t *testing.T) {
	const before = "User me\nHost dev\n  HostName dev.example.org\nHost lab\n  ProxyJump root@gate:2222\n"
	s := newTestConfig(t, before)

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
			s := newTestConfig(t, c.before)
			s.run(append(c.args, "dev")...)
			require.Equal(t, c.want, s.proxy("dev"))
			is, err := evaluator{path: s.file}.settings(t.Context(), []byte(s.read()), "dev")
			require.NoError(t, err)
			require.False(t, is.On("proxyusefdpass", false))
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
	s := newTestConfig(t, "")
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

// reordered is proxy for a line in which other flags come before that of the file.
func (s *testConfig) reordered(host string) string {
	s.t.Helper()
	is, err := evaluator{path: s.file}.settings(s.t.Context(), []byte(s.read()), host)
	require.NoError(s.t, err)
	_, line, _ := strings.Cut(is.Text("proxycommand"), " proxy ")
	line = strings.Replace(line, "-F "+quoteWord(s.file, runtime.GOOS)+" ", "", 1)
	return strings.TrimSuffix(line, " --alias %n --user %r %h %p")
}

func TestSetupKeepsCanonicalNames(t *testing.T) {
	s := newTestConfig(t, "Host lab\n  CanonicalizeHostname no\nHost *\n  CanonicalizeHostname yes\n  CanonicalizeMaxDots 0\n")
	s.run("d.e.v", "lab")
	require.Contains(t, s.read(), "Host d.e.v\n    "+"ProxyCommand")
	require.Equal(t, 1, strings.Count(s.read(), "    CanonicalizeHostname always\n"))
	_, said := s.run("d.e.v", "lab")
	require.Contains(t, said, "nothing to change")
}

func TestSetupRefuses(t *testing.T) {
	t.Run("what ssh does not read", func(t *testing.T) {
		s := newTestConfig(t, "Host dev\n  Nonsense 1\n")
		s.refuses(s.file+`: line 2: Bad configuration option: nonsense`, "dev")
	})
	t.Run("an fdpass command", func(t *testing.T) {
		newTestConfig(t, "ProxyUseFdpass yes\nProxyCommand nc -F %h %p\n").refuses("hands its socket over", "dev")
	})
	t.Run("fdpass through a hop", func(t *testing.T) {
		newTestConfig(t, "ProxyJump gate\n").refuses("it is reached through gate", "--fdpass", "dev")
	})
	t.Run("quotes that cannot be kept", func(t *testing.T) {
		newTestConfig(t, "ProxyCommand x \\'y\n").refuses("ssh does not accept the configuration", "dev")
	})
	t.Run("lines above the block", func(t *testing.T) {
		s := newTestConfig(t, "User me\n")
		s.run("dev")
		s.write("Host dev\n  ProxyCommand nc %h %p\n" + s.read())
		s.refuses("come before ours", "dev")
	})
	t.Run("marks", func(t *testing.T) {
		s := newTestConfig(t, "# gpg-bridge: begin\n")
		s.refuses("do not match", "dev")
		s.refuses("do not match", "--undo")
	})
	t.Run("without ssh", func(t *testing.T) {
		s := newTestConfig(t, "User me\n")
		s.run("dev")
		t.Setenv("PATH", t.TempDir())
		s.refuses("there is no ssh", "lab")
		s.run("--undo")
		require.Equal(t, "User me\n", s.read())
	})
}

// A line that names this program otherwise, as an older setup wrote it, or for
// where it was before, is brought up to date, with what it says.
func TestSetupAgainWithAnOldLine(t *testing.T) {
	program, err := programPath()
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(program))
	s := newTestConfig(t, "User me\n")
	s.run("--keys", "none", "dev", "lab")
	now := s.read()
	for _, old := range []string{"gpg-bridge", "'/opt/100%%/gpg-bridge'"} {
		s.write(strings.ReplaceAll(now, "ProxyCommand "+quoteWord(program, runtime.GOOS), "ProxyCommand "+old))
		require.NotEqual(t, now, s.read())
		diff, _ := s.run("dev", "lab")
		require.Equal(t, now, s.read())
		require.Contains(t, diff, "-    ProxyCommand "+old+" proxy -F ")
		require.Contains(t, diff, "+    ProxyCommand "+quoteWord(program, runtime.GOOS)+" proxy -F ")
	}
	s.write(strings.ReplaceAll(now, "ProxyCommand "+quoteWord(program, runtime.GOOS), "ProxyCommand gpg-bridge"))
	s.run("--undo")
	require.Equal(t, "User me\n", s.read())
}

// A hand-written line is as good as ours, and is not put behind another one.
func TestSetupLeavesALineOfTheUsers(t *testing.T) {
	s := newTestConfig(t, "Host dev\n  ProxyCommand exec /opt/gpg-bridge proxy --alias %n %h %p\n")
	before := s.read()
	_, said := s.run("dev")
	require.Contains(t, said, "from another line of yours")
	require.Equal(t, before, s.read())
}

// A file that somebody broke after us can still be rid of our lines.
func TestSetupUndoesInABrokenFile(t *testing.T) {
	s := newTestConfig(t, "User me\n")
	s.run("dev")
	s.write(s.read() + "Nonsense 1\n")
	s.run("--undo")
	require.Equal(t, "User me\nNonsense 1\n", s.read())

	s = newTestConfig(t, "")
	s.run("dev")
	s.write(strings.Replace(s.read(), "Host *\n", "Host *\nUser me\n", 1))
	_, said := s.run("--undo")
	require.Contains(t, said, "somebody else's lines stay")
	require.Contains(t, s.read(), "Host *\nUser me\n# gpg-bridge: end\n")
}

func TestSetupMakesTheFileAndRemovesIt(t *testing.T) {
	s := newTestConfig(t, "")
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
