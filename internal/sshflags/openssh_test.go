package sshflags_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshflags"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/release"
)

// The table has every flag in the usage of the ssh that is here, and of other releases, with a
// value where it has one.
func TestTableHasAllThatSSHHas(t *testing.T) {
	t.Run("here", func(t *testing.T) { requireAll(t, env.Tool(t, "ssh")) })
	for _, suite := range release.Suites() {
		t.Run(suite, func(t *testing.T) { requireAll(t, append(release.Inside(t, suite), "ssh")...) })
	}
}

func requireAll(t *testing.T, ssh ...string) {
	t.Helper()
	out, _ := exec.Command(ssh[0], ssh[1:]...).CombinedOutput()
	usage := string(out)
	require.Contains(t, usage, "usage: ssh")
	letters := regexp.MustCompile(`\[-(\w+)\]`).FindStringSubmatch(usage)
	require.NotNil(t, letters)
	for _, letter := range letters[1] {
		flag, ok := sshflags.Find(byte(letter))
		require.True(t, ok, "-%c", letter)
		require.Empty(t, flag.Value, "-%c", letter)
	}
	valued := regexp.MustCompile(`\[-(\w) `).FindAllStringSubmatch(usage, -1)
	require.Greater(t, len(valued), 15)
	for _, m := range valued {
		flag, ok := sshflags.Find(m[1][0])
		require.True(t, ok, "-%s", m[1])
		require.NotEmpty(t, flag.Value, "-%s", m[1])
	}
}

// dump is what ssh -G prints and its exit status.
func dump(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.Command(env.Tool(t, "ssh"), append([]string{"-G", "-F", "none"}, args...)...)
	text, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		return "", exit.ExitCode()
	}
	require.NoError(t, err)
	return string(text), 0
}

// What ssh makes of the words that we ask about is what it makes of the user's: the same
// destination, the same command, and the same first or last of several values.
func TestAskedWordsMeanTheSame(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"h", "u@h", "-p 22 h", "-p22 h", "-p 22 -p 23 h", "-oPort=21 -p 22 h", "-p 22 -o Port=21 h",
		"-l a b@h", "b@h -l a", "-l a -l b h", "-oUser=c -l a h", "-l a -oUser=c h", "b@h -oUser=c", "-oUser=c b@h",
		"ssh://b@h:77 -p 5", "-p 5 ssh://b@h:77", "ssh://b@h:77 -oPort=3", "-oPort=3 ssh://h:77",
		"-4 -oAddressFamily=inet6 h", "-oAddressFamily=inet6 -4 h", "-46 h", "-64 h",
		"-A -oForwardAgent=no h", "-oForwardAgent=no -A h", "-Aa h", "-aA h", "-oForwardAgent=yes -a h",
		"-t h", "-tt h", "-t -t h", "-tTt h", "-Tt h", "-tT h", "-oRequestTTY=force -t h", "-t -oRequestTTY=force h", "h -T -t",
		"-N h", "-Nf h", "-NTf h", "-NT h -p 5", "-s h sftp", "-o SessionType=none h", "-N -s h", "-oSessionType=none -N h",
		"-n h", "-f h true", "-g h", "-e none h", "-e^X h", "-oEscapeChar=none -e ^A h", "-e ^A -oEscapeChar=none h",
		"-L8080:x:80 h", "-L 8080:x:80 -D1 -R 2:y:3 h", "-D 1080 -D 1081 h",
		"-c aes128-ctr -oCiphers=aes256-ctr h", "-oCiphers=aes256-ctr -c aes128-ctr h", "-c +aes128-cbc h", "-m hmac-sha2-256 h",
		"-b 127.0.0.1 -B lo h", "-C h", "-x -X h", "-X -x h", "-Y h", "-K h", "-k h", "-Kk h", "-kK h", "-M h", "-MM h", "-S /s h", "-S none h",
		"-w any:3 h", "-I /lib/p.so h", "-J a,b h", "-J a -J b h", "-i /dev/null h", "-oFoo=bar h", "-p x h", "-oPort h",
		"-q h", "-v h", "-vvv h", "-vq h", "-qv h", "-qvv h", "-vqv h", "-oLogLevel=ERROR h", "-oLogLevel=ERROR -v h", "-v -oLogLevel=ERROR h",
		"-q -oLogLevel=ERROR h", "-oLogLevel=ERROR -q h", "-vvvvv h", "-E /nonexistent/dir/x h", "-y h",
		"h cmd -p 22", "h -- -p 22", "-- h -p 22", "-p 22 -- h -p 23", "h -p 22 -- -p 23", "h - x", "- x",
		"-l -- h -p 22", "h -l -- -p 22", "-2 h", "-o Port=5 h -o Port=6", "h -o Port=6 -p 7", "h -oUser=x u@y",
		"-p=22 h", "-o=x h", "-l=u h", "-NTo=x h", "-1 h", "-s h", "h -s", "h -f",
	} {
		args := strings.Fields(line)
		parsed, err := sshflags.Parse(args, nil)
		require.NoError(t, err, line)
		asked := append(parsed.Asking(), parsed.Command...)
		theirs, theirStatus := dump(t, args...)
		ours, ourStatus := dump(t, asked...)
		if parsed.Has('E') { // ssh -G would write into it
			require.Equal(t, []int{1, 0}, []int{theirStatus, ourStatus}, line)
			continue
		}
		require.Equal(t, theirStatus, ourStatus, "%s, asked as %q", line, asked)
		require.Equal(t, theirs, ours, "%s, asked as %q", line, asked)
	}
}

// -P is asked about as an option: ssh before 9.4 would take its value for the destination. What
// there is no option for is refused in ssh's words.
func TestTagIsAnOption(t *testing.T) {
	parsed, err := sshflags.Parse([]string{"-P", "x", "h"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"-P", "x", "h"}, parsed.Args)
	require.Equal(t, []string{"-oTag=x", "--", "h"}, parsed.Asking())
	for _, suite := range release.Suites() {
		ask := func(args ...string) string {
			words := append(release.Inside(t, suite), "ssh", "-G", "-F", "none")
			out, err := exec.Command(words[0], append(words[1:], args...)...).Output()
			require.NoError(t, err)
			return string(out)
		}
		require.Contains(t, ask(parsed.Args...), "\ntag x\n")
		require.Equal(t, ask(parsed.Args...), ask(parsed.Asking()...))
	}
}

// The destination and the command are those of ssh: Match exec tells what they are.
func TestDestinationIsSSHs(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]string{
		"h":                         {"h", ""},
		"u@h a  b":                  {"u@h", "a b"},
		"-p 22 h -l u ls -l":        {"h", "ls -l"},
		"h -p22 -lu":                {"h", ""},
		"h -- -x":                   {"h", "-x"},
		"h ls -- -x":                {"h", "ls -- -x"},
		"h -p 22 -- -p 23":          {"h", "-p 23"},
		"-- h -p 22 ls":             {"h", "-p 22 ls"},
		"-l u -- h -oX=false -- -x": {"h", "-oX=false -- -x"},
		"-l -- h -p 22":             {"h", "-p 22"},
		"-vvNTp22 h":                {"h", ""},
		"h -- -- x":                 {"h", "-- x"},
	} {
		parsed, err := sshflags.Parse(strings.Fields(line), nil)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{parsed.Destination, parsed.Join()}, line)
		require.Equal(t, strings.Fields(line), parsed.Args)
		out, _ := dump(t, strings.Fields(line)...)
		if strings.HasPrefix(out, "host ") {
			require.True(t, strings.HasPrefix(out, "host "+strings.TrimPrefix(want[0], "u@")+"\n"), out)
		}
	}
}

// What ssh cannot read we refuse in its words, and with the same flags behind others.
func TestUsageErrorsAreSSHs(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"-j h", "-p", "h -p", "-Nj h", "h -zz", "--foo h", "-N --foo", "-NTo"} {
		out, err := exec.Command(env.Tool(t, "ssh"), strings.Fields(line)...).CombinedOutput()
		exit, ok := err.(*exec.ExitError)
		require.True(t, ok)
		require.Equal(t, 255, exit.ExitCode())
		first, _, _ := strings.Cut(string(out), "\n")
		_, err = sshflags.Parse(strings.Fields(line), nil)
		require.EqualError(t, err, strings.TrimSpace(first), line)
	}
}

// Behind a flag that leaves all to ssh nothing is an error, and ssh gets all words but ours.
func TestHandedWords(t *testing.T) {
	own := func(words []string) (int, error) { return 2, nil }
	for line, want := range map[string]string{
		"-V":                       "-V",
		"-V -j":                    "-V -j",
		"-Vj":                      "-Vj",
		"-O check -S s h":          "-O check -S s h",
		"--own x -W a:1 h":         "-W a:1 h",
		"-G --own x --port 22 h a": "-G -p22 h a",
		"h -G -p":                  "h -G -p",
		"-Q cipher":                "-Q cipher",
	} {
		parsed, err := sshflags.Parse(strings.Fields(line), own)
		require.NoError(t, err, line)
		require.True(t, parsed.IsHanded, line)
		require.Equal(t, strings.Fields(want), parsed.Args, line)
	}
}
