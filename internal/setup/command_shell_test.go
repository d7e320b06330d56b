//go:build unix

package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshconfig"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/sshfwd/config"
)

// ssh runs a ProxyCommand with the user's shell, whichever that is: each must
// give the program the words that were meant.
func TestLineIsReadAlikeByAllShells(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's a 100% $HOME")
	require.NoError(t, os.Mkdir(dir, 0o700))
	program, said := filepath.Join(dir, "gpg-bridge"), filepath.Join(t.TempDir(), "said")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '<%s>\\n' \"$@\" >"+said+"\n"), 0o700))
	for _, via := range []string{"ssh -W '[%h]:%p' gate", `sh -c "nc '%h' %p" # $x`, `sh -c 'echo "%r" $0 \n'`} {
		for _, shell := range []string{"sh", "bash", "zsh", "ksh", "fish", "tcsh"} {
			var options Options
			options.AddFlags(pflag.NewFlagSet("setup", pflag.ContinueOnError))
			c := &change{options: &options, program: program}
			lines, err := c.lines("dev", config.Settings{"proxycommand": {via}}, nil)
			require.NoError(t, err)
			text, err := sshconfig.Parse([]byte("Host dev\n  HostName h.invalid\n  Port 2222\n  User me\n"))
			require.NoError(t, err)
			text.Set("dev", lines...)
			file := filepath.Join(t.TempDir(), "config")
			require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))

			cmd := exec.Command(env.Tool(t, "ssh"), "-F", file, "dev")
			cmd.Env = append(os.Environ(), "SHELL="+env.Tool(t, shell))
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			words, err := os.ReadFile(said)
			require.NoError(t, err, "%s: %s", shell, out)
			require.NoError(t, os.Remove(said))
			want := strings.NewReplacer("%h", "h.invalid", "%p", "2222", "%r", "me").Replace(via)
			require.Equal(t, "<proxy>\n<--via>\n<"+want+">\n<--alias>\n<dev>\n<--user>\n<me>\n<h.invalid>\n<2222>\n", string(words), shell)
		}
	}
}
