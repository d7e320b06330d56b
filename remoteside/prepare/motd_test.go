package prepare

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// The message of the day, from files that are named in all the ways of pam.d(5), in
// each shell that may be called sh.
func TestMessageOfTheDayOfPAM(t *testing.T) {
	for _, c := range []struct {
		pam  string
		want []string
	}{
		{"session optional pam_motd.so motd={DIR}/first", []string{"first, without a line feed"}},
		{"session optional pam_motd.so motd={DIR}/first\nsession\toptional\tpam_motd.so motd={DIR}/second",
			[]string{"first, without a line feed", "second", "", "  its end \\n %s"}},
		{"session [success=ok ignore=ignore] pam_motd.so motd={DIR}/first", []string{"first, without a line feed"}},
		{"session [default=ignore] /lib/security/pam_motd.so noupdate motd={DIR}/first", []string{"first, without a line feed"}},
		{"-session optional pam_motd.so motd={DIR}/none:{DIR}/dir:{DIR}/first:{DIR}/second", []string{"first, without a line feed"}},
		{"session optional pam_motd.so motd_dir={DIR}/none:{DIR}/dir", []string{"an asterisk", "a blank"}},
		{"session optional pam_motd.so motd={DIR}/long", []string{strings.Repeat("x", maxText)}},
		{"session optional pam_motd.so motd={DIR}/many", strings.Split(strings.Repeat("line ", 99)+"line", " ")},
		{"# session optional pam_motd.so motd={DIR}/first\nauth optional pam_motd.so motd={DIR}/first\n" +
			"session optional pam_exec.so pam_motd.so motd={DIR}/first\nsession optional pam_motd.so motd={DIR}/none\n\nsession\n", nil},
	} {
		for _, shell := range []string{"bash", "dash", "busybox", "ksh", "mksh", "yash", "zsh"} {
			t.Run(shell, func(t *testing.T) {
				t.Parallel()
				require.Equal(t, c.want, shownMOTD(t, shell, c.pam), c.pam)
			})
		}
	}
}

// shownMOTD runs the script up to where it finds no gpgconf, on a host with these lines
// in PAM's configuration.
func shownMOTD(t *testing.T, shell, pam string) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"first": "first, without a line feed", "second": "second\n\n  its end \\n %s\n", "dir/*": "an asterisk\n", "dir/a b": "a blank\n",
		"long": strings.Repeat("x", 5000) + "\n", "many": strings.Repeat("line\n", 200), "pam": strings.ReplaceAll(pam, "{DIR}", dir),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	programs := t.TempDir()
	for name, program := range map[string]string{"sh": shell, "awk": "awk", "printf": "printf", "[": "["} {
		require.NoError(t, os.Symlink(env.Tool(t, program), filepath.Join(programs, name)))
	}
	script := strings.ReplaceAll(commonBody+prepareBody, "/etc/pam.d/sshd", filepath.Join(dir, "pam"))
	script = strings.Replace(script, "\nPATH=$PATH:", "\nPATH=$PATH #", 1)
	command := exec.Command(filepath.Join(programs, "sh"), "-c", "mark=the-mark motd=1 home=\n"+script)
	command.Env = []string{"PATH=" + programs, "MOTD_SHOWN=pam", "HOME=" + dir}
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	report := newHostReport("the-mark", nil)
	_, err = report.Write(out)
	require.NoError(t, err)
	require.Equal(t, "nogpg", report.verdict.word, string(out))
	require.Empty(t, report.foreign.text)
	return report.motd
}

var interval = regexp.MustCompile(`\{([0-9]+)(?:,([0-9]*))?\\?\}`)

// No regular expression in a script repeats anything more than 255 times: that is all
// that POSIX asks for (RE_DUP_MAX), and all that musl, macOS and the BSDs take.
func TestScriptsHaveNoLargeInterval(t *testing.T) {
	require.Equal(t, []string{"{0,500\\}", "0", "500"}, interval.FindStringSubmatch(`s/.\{0,500\}/`))
	for _, script := range []string{commonBody + prepareBody, commonBody + inspectBody, loginBody, refusalBody, removeBody, oneWord} {
		for _, found := range interval.FindAllStringSubmatch(script, -1) {
			for _, bound := range found[1:] {
				if n, err := strconv.Atoi(bound); bound != "" {
					require.NoError(t, err)
					require.LessOrEqual(t, n, 255, found[0])
				}
			}
		}
	}
}
