package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/sshfwd"
)

// parseSSH reads a command line of gpg-bridge ssh and runs nothing.
func parseSSH(t *testing.T, args ...string) (flags sshFlags, command string) {
	t.Helper()
	cmd := &cobra.Command{Use: "ssh", Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) (err error) {
		command, err = flags.destination(cmd, args)
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
	type options = sshfwd.Options
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
		{[]string{"--", "h", "-p", "22", "ls"}, options{Destination: "h", Port: 22}, "ls"},
		{[]string{"-i", "a", "h", "-i", "b,c"}, options{Destination: "h", Identities: []string{"a", "b,c"}}, ""},
		{[]string{"-o", "A=1", "h", "-o", "B 2"}, options{Destination: "h", Options: []string{"A=1", "B 2"}}, ""},
		{[]string{"-F", "none", "h"}, options{Destination: "h", ConfigFile: "none"}, ""},
	} {
		flags, command := parseSSH(t, test.args...)
		require.Equal(t, test.command, command, test.args)
		flags.options.Options = append([]string(nil), flags.options.Options...)
		flags.options.Identities = append([]string(nil), flags.options.Identities...)
		flags.options.LocalForwards, flags.options.RemoteForwards, flags.options.DynamicForwards = nil, nil, nil
		require.Equal(t, test.want, flags.options, test.args)
	}
}

func TestCountedFlags(t *testing.T) {
	flags, _ := parseSSH(t, "-vv", "h", "-v", "-q", "-N")
	require.Equal(t, 3, flags.verbose)
	require.True(t, flags.quiet)
	require.True(t, flags.noShell)
}

// The flags -t and -T work as in ssh.c's main: each one changes what is known,
// and what is known at the end replaces RequestTTY.
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
		require.Equal(t, test.want, flags.tty, test.args)
		flags, _ = parseSSH(t, append([]string{"h"}, test.args...)...)
		require.Equal(t, test.want, flags.tty, "behind the host: %v", test.args)
	}
}

func TestWantsTTYAsSSHDoes(t *testing.T) {
	const always, never, here = "always", "never", "with a terminal here"
	for _, test := range []struct {
		flag, config, command string
		want                  string
	}{
		{"", "auto", "", here},
		{"", "auto", "ls", never},
		{"", "yes", "", here},
		{"", "yes", "ls", here},
		{"", "force", "", always},
		{"", "force", "ls", always},
		{"", "no", "", never},
		{"", "no", "ls", never},
		{"no", "force", "", never},
		{"no", "yes", "ls", never},
		{"yes", "no", "", here},
		{"yes", "no", "ls", here},
		{"yes", "force", "ls", here},
		{"force", "no", "ls", always},
		{"force", "auto", "", always},
	} {
		for _, haveTerminal := range []bool{false, true} {
			r := &sshRun{flags: &sshFlags{tty: test.flag}, config: &sshfwd.Config{RequestTTY: test.config}}
			wanted, missing := r.wantsTTY(haveTerminal, test.command)
			require.Equal(t, test.want == always || test.want == here && haveTerminal, wanted, "%+v %t", test, haveTerminal)
			require.Equal(t, test.want == here && !haveTerminal, missing, "%+v %t", test, haveTerminal)
		}
	}
}

func TestEnvironmentIsSendEnvThenSetEnv(t *testing.T) {
	r := &sshRun{config: &sshfwd.Config{
		SendEnv: []string{"LC_*", "A?"},
		SetEnv:  []string{"LC_X=set", "B=1=2", "EMPTY="},
	}}
	require.Equal(t, []sshfwd.EnvVar{
		{Name: "LC_X", Value: "ours"}, {Name: "AB", Value: ""},
		{Name: "LC_X", Value: "set"}, {Name: "B", Value: "1=2"}, {Name: "EMPTY", Value: ""},
	}, r.environment([]string{"LC_X=ours", "AB=", "ABC=1", "A=1", "lc_x=1", "LC"}))
}

func TestKeysFlag(t *testing.T) {
	for value, want := range map[string]*bridge.Local{
		"":      {},
		"none":  {NoKeys: true},
		"A":     {Keys: []string{"A"}},
		"A,B C": {Keys: []string{"A", "B", "C"}},
	} {
		var local bridge.Local
		(&remoteFlags{keys: value}).applyTo(&local)
		require.Equal(t, want, &local, value)
	}
}

func TestOnlyForward(t *testing.T) {
	for _, test := range []struct {
		noShell          bool
		config           sshfwd.Config
		onlyForward, all bool
	}{
		{false, sshfwd.Config{SessionType: "default"}, false, false},
		{true, sshfwd.Config{SessionType: "default"}, true, true},
		{false, sshfwd.Config{SessionType: "none"}, true, true},
		{false, sshfwd.Config{ExitOnForwardFailure: true}, false, true},
	} {
		r := &sshRun{flags: &sshFlags{noShell: test.noShell}, config: &test.config}
		require.Equal(t, test.onlyForward, r.onlyForward())
		require.Equal(t, test.all, r.bridgeIsAll())
	}
}
