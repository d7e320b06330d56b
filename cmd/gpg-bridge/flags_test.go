package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/target"
	"gpg-bridge/sshfwd/config"
)

// parseSSH reads a command line of gpg-bridge ssh and runs nothing.
func parseSSH(t *testing.T, args ...string) (flags sshFlags, command string) {
	t.Helper()
	flags.request.Spec = target.NewSpec("")
	cmd := &cobra.Command{Use: "ssh", Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) (err error) {
		err = flags.destination(cmd, args)
		command, flags.request.Command = flags.request.Command, ""
		return err
	}}
	flags.addTo(cmd.Flags())
	cmd.Flags().SetInterspersed(false)
	cmd.SetArgs(args)
	require.NoError(t, cmd.Execute())
	return flags, command
}

// Flags may follow the host, and the command begins where they end (ssh.c).
func TestCommandBeginsBehindHostAndFlags(t *testing.T) {
	type options = config.Options
	for _, test := range []struct {
		args    []string
		want    options
		command string
	}{
		{[]string{"h"}, options{Destination: "h"}, ""},
		{[]string{"h", "ls"}, options{Destination: "h"}, "ls"},
		{[]string{"u@h", "a  b", "c"}, options{Destination: "u@h"}, "a  b c"},
		{[]string{"-p", "22", "h", "-l", "u", "ls", "-l"}, options{Destination: "h", Port: 22, User: "u"}, "ls -l"},
		{[]string{"h", "-p22", "-lu"}, options{Destination: "h", Port: 22, User: "u"}, ""},
		{[]string{"h", "--", "-x"}, options{Destination: "h"}, "-x"},
		{[]string{"h", "ls", "--", "-x"}, options{Destination: "h"}, "ls -- -x"},
		{[]string{"h", "-p", "22", "--", "-p", "23"}, options{Destination: "h", Port: 22}, "-p 23"},
		{[]string{"--", "h", "-p", "22", "ls"}, options{Destination: "h"}, "-p 22 ls"},
		{[]string{"-l", "u", "--", "h", "-oProxyCommand=false", "--", "-x"}, options{Destination: "h", User: "u"}, "-oProxyCommand=false -- -x"},
		{[]string{"--", "h", "--help"}, options{Destination: "h"}, "--help"},
		{[]string{"-i", "a", "h", "-i", "b,c"}, options{Destination: "h", Identities: []string{"a", "b,c"}}, ""},
		{[]string{"-o", "A=1", "h", "-o", "B 2"}, options{Destination: "h", Options: []string{"A=1", "B 2"}}, ""},
		{[]string{"-a", "-e", "none", "-o", "A=1", "h", "-g"}, options{Destination: "h", Options: []string{"ForwardAgent=no", "EscapeChar=none", "A=1", "GatewayPorts=yes"}}, ""},
		{[]string{"-o", "A=1", "-e", "none", "-A", "h"}, options{Destination: "h", Options: []string{"ForwardAgent=yes", "A=1", "EscapeChar=none"}}, ""},
		{[]string{"-F", "none", "h"}, options{Destination: "h", ConfigFile: "none"}, ""},
	} {
		flags, command := parseSSH(t, test.args...)
		require.Equal(t, test.command, command, test.args)
		options := flags.request.SSH()
		options.Options = append([]string(nil), options.Options...)
		options.Identities = append([]string(nil), options.Identities...)
		options.LocalForwards, options.RemoteForwards, options.DynamicForwards = nil, nil, nil
		require.Equal(t, test.want, options, test.args)
	}
}

// No argument after `--` is a flag, wherever the `--` stands: the arguments after it are the
// command, and do not change the flags.
func TestNothingBehindTwoDashesIsAFlag(t *testing.T) {
	words := []string{"-v", "-N", "-oProxyCommand=touch pwned", "-l", "u", "-p22", "--keys=none", "--help", "-F", "--", "-", "", "ls", "h2"}
	for _, before := range [][]string{{"--", "h"}, {"h", "--"}, {"-v", "--", "h"}, {"-v", "h", "-l", "me", "--"}} {
		plain, command := parseSSH(t, before...)
		require.Empty(t, command)
		for _, first := range words {
			for _, second := range words {
				behind := []string{first, second}
				flags, command := parseSSH(t, append(slices.Clone(before), behind...)...)
				require.Equal(t, plain, flags, "%q", behind)
				require.Equal(t, strings.Join(behind, " "), command)
			}
		}
	}
}

func TestCountedFlags(t *testing.T) {
	flags, _ := parseSSH(t, "-vv", "h", "-v", "-q", "-N")
	require.Equal(t, 3, flags.request.Verbosity)
	require.True(t, flags.request.Quiet)
	require.True(t, flags.request.NoShell)
}

// The flags -t and -T work as in ssh.c's main: each changes the value so far, and the last
// value replaces RequestTTY.
func TestLastTerminalFlagCounts(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"-t"}, "yes"},
		{[]string{"-tt"}, "force"},
		{[]string{"-t", "-t", "-t"}, "force"},
		{[]string{"-T"}, "no"},
		{[]string{"-T", "-t"}, "yes"},
		{[]string{"-T", "-tt"}, "force"},
		{[]string{"-t", "-T"}, "no"},
		{[]string{"-tTt"}, "yes"},
		{[]string{"-ttT", "-t"}, "yes"},
	} {
		flags, _ := parseSSH(t, append(test.args, "h")...)
		require.Equal(t, test.want, flags.request.TTY, test.args)
		flags, _ = parseSSH(t, append([]string{"h"}, test.args...)...)
		require.Equal(t, test.want, flags.request.TTY, "behind the host: %v", test.args)
	}
}
