package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshflags"
	"gpg-bridge/internal/sshsession"
	"gpg-bridge/internal/target"
)

// parseSSH reads a command line of gpg-bridge ssh and runs nothing.
func parseSSH(t *testing.T, args ...string) sshsession.Request {
	t.Helper()
	flags := sshFlags{spec: target.NewSpec("")}
	flags.addTo(pflag.NewFlagSet("", pflag.ContinueOnError))
	line, err := sshflags.Parse(args, flags.own)
	require.NoError(t, err)
	return flags.request(line)
}

// Our own flags may stand among ssh's, and ssh never sees them.
func TestOwnFlagsAmongSSHs(t *testing.T) {
	for _, test := range []struct {
		args    string
		want    func(*target.Spec)
		words   string
		rest    string
		command string
	}{
		{args: "h ls -l", words: "-- h", rest: "h ls -l", command: "ls -l"},
		{args: "--keys none -p 22 h --takeover -v ls --keys x", want: func(s *target.Spec) { s.Keys, s.Takeover = "none", true },
			words: "-p22 h -v --", rest: "-p 22 h -v ls --keys x", command: "ls --keys x"},
		{args: "--keys=A,B --agent-socket /s h", want: func(s *target.Spec) { s.Keys, s.AgentSocket = "A,B", "/s" }, words: "-- h", rest: "h"},
		{args: "--port 22 --login=u h --option A=1 --tty", words: "-p22 -lu h -oA=1 -t --", rest: "-p22 -lu h -oA=1 -t"},
		{args: "h -- --keys none", words: "-- h", rest: "h -- --keys none", command: "--keys none"},
		{args: "-- h --keys none", words: "-- h", rest: "-- h --keys none", command: "--keys none"},
	} {
		spec := target.NewSpec("h")
		if test.want != nil {
			test.want(&spec)
		}
		request := parseSSH(t, strings.Fields(test.args)...)
		require.Equal(t, spec, request.Spec, test.args)
		require.Equal(t, test.words, strings.Join(request.Words, " "), test.args)
		require.Equal(t, test.rest, strings.Join(request.Args, " "), test.args)
		require.Equal(t, test.command, request.Command, test.args)
	}
}

// No argument after `--` is a flag, wherever the `--` stands: the arguments after it are the
// command, and do not change the flags.
func TestNothingBehindTwoDashesIsAFlag(t *testing.T) {
	words := []string{"-v", "-N", "-oProxyCommand=touch pwned", "-l", "u", "-p22", "--keys=none", "--help", "-F", "--", "-", "", "ls", "h2"}
	for _, before := range [][]string{{"--", "h"}, {"h", "--"}, {"-v", "--", "h"}, {"-v", "h", "-l", "me", "--"}} {
		plain := parseSSH(t, before...)
		require.Empty(t, plain.Command)
		for _, first := range words {
			for _, second := range words {
				behind := []string{first, second}
				request := parseSSH(t, append(slices.Clone(before), behind...)...)
				require.Equal(t, strings.Join(behind, " "), request.Command)
				require.Equal(t, append(slices.Clone(before), behind...), request.Args)
				request.Command, request.Args = plain.Command, plain.Args
				require.Equal(t, plain, request, "%q", behind)
			}
		}
	}
}
