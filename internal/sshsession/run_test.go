package sshsession

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/sshfwd/config"
)

func TestOnlyForward(t *testing.T) {
	for _, test := range []struct {
		config           config.Config
		onlyForward, all bool
	}{
		{config.Config{SessionType: "default"}, false, false},
		{config.Config{SessionType: "none"}, true, true},
		{config.Config{ExitOnForwardFailure: true}, false, true},
	} {
		r := &run{config: &test.config}
		require.Equal(t, test.onlyForward, r.onlyForward())
		require.Equal(t, test.all, r.bridgeIsAll())
	}
}

func TestWantsTTYAsSSHDoes(t *testing.T) {
	const always, never, here = "always", "never", "with a terminal here"
	for _, test := range []struct {
		request, command string
		noStdin          bool
		want             string
	}{
		{"auto", "", false, here},
		{"auto", "ls", false, never},
		{"yes", "", false, here},
		{"yes", "ls", false, here},
		{"yes", "ls", true, never},
		{"force", "", false, always},
		{"force", "ls", false, always},
		{"force", "ls", true, always},
		{"no", "", false, never},
		{"no", "ls", false, never},
		{"auto", "", true, never},
	} {
		for _, haveTerminal := range []bool{false, true} {
			r := &run{config: &config.Config{RequestTTY: test.request, StdinNull: test.noStdin}}
			wanted, missing := r.wantsTTY(haveTerminal, test.command)
			require.Equal(t, test.want == always || test.want == here && haveTerminal, wanted, "%+v %t", test, haveTerminal)
			asked := test.request == "yes" || test.request == "auto" && test.command == ""
			require.Equal(t, asked && !wanted, missing, "%+v %t", test, haveTerminal)
		}
	}
}
