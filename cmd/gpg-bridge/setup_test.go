package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/ui"
)

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

// gpg-bridge keep understands the flags with which a service starts it: every flag of setup
// that is about the bridge, under the same name.
func TestServiceIsACommandLineOfKeep(t *testing.T) {
	for _, way := range []string{"via", "jump"} {
		want := map[string]string{
			"agent-socket": "/S.agent", "allow-unrestricted": "true", "no-compat": "true", "remote-socket": "/S.remote",
			"keys": "none", "takeover": "true", "config": "/config", way: "gate",
		}
		args := []string{"setup", "--service=systemd"}
		for name, value := range want {
			args = append(args, "--"+name+"="+value)
		}
		code, unit, stderr := runMain(t, "", append(args, "dev")...)
		require.Zero(t, code, stderr)
		_, line, found := strings.Cut(unit, "\nExecStart=")
		require.True(t, found)
		line, _, _ = strings.Cut(line, "\n")
		_, line, found = strings.Cut(line, " keep ")
		require.True(t, found)

		keep, setup := newKeep(ui.New(nil, nil, nil)), newSetup(ui.New(nil, nil, nil))
		require.NoError(t, keep.ParseFlags(strings.Fields(line)))
		require.Equal(t, []string{"%i"}, keep.Flags().Args())
		want["pin"] = "true"
		for name, value := range want {
			require.Equal(t, value, keep.Flags().Lookup(name).Value.String(), name)
			if name != "pin" {
				require.Equal(t, setup.Flags().Lookup(name).Shorthand, shorthand(keep, name), name)
			}
		}
	}
}

func shorthand(cmd *cobra.Command, name string) string { return cmd.Flags().Lookup(name).Shorthand }
