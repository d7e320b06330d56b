package sshsession

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/sshfwd/config"
)

func TestOnlyForward(t *testing.T) {
	for _, test := range []struct {
		noShell          bool
		config           config.Config
		onlyForward, all bool
	}{
		{false, config.Config{SessionType: "default"}, false, false},
		{true, config.Config{SessionType: "default"}, true, true},
		{false, config.Config{SessionType: "none"}, true, true},
		{false, config.Config{ExitOnForwardFailure: true}, false, true},
	} {
		r := &run{request: Request{NoShell: test.noShell}, config: &test.config}
		require.Equal(t, test.onlyForward, r.onlyForward())
		require.Equal(t, test.all, r.bridgeIsAll())
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
			r := &run{request: Request{TTY: test.flag}, config: &config.Config{RequestTTY: test.config}}
			wanted, missing := r.wantsTTY(haveTerminal, test.command)
			require.Equal(t, test.want == always || test.want == here && haveTerminal, wanted, "%+v %t", test, haveTerminal)
			require.Equal(t, test.want == here && !haveTerminal, missing, "%+v %t", test, haveTerminal)
		}
	}
}

func TestWantsTTY(t *testing.T) {
	for _, test := range []struct {
		request  string
		asked    Request
		terminal bool
		command  string
		wanted   bool
		missing  bool
	}{
		{"auto", Request{}, true, "", true, false},
		{"auto", Request{}, true, "true", false, false},
		{"auto", Request{}, false, "", false, true},
		{"auto", Request{}, false, "true", false, false},
		{"auto", Request{TTY: "yes"}, true, "true", true, false},
		{"auto", Request{TTY: "yes"}, false, "true", false, true},
		{"auto", Request{TTY: "force"}, false, "true", true, false},
		{"auto", Request{NoStdin: true}, true, "", false, true},
		{"auto", Request{NoStdin: true, TTY: "force"}, true, "", true, false},
		{"force", Request{}, false, "true", true, false},
		{"force", Request{TTY: "no"}, true, "", false, false},
		{"yes", Request{}, true, "true", true, false},
		{"no", Request{}, true, "", false, false},
		{"no", Request{TTY: "yes"}, true, "true", true, false},
	} {
		r := &run{request: test.asked, config: &config.Config{RequestTTY: test.request}}
		wanted, missing := r.wantsTTY(test.terminal, test.command)
		require.Equal(t, [2]bool{test.wanted, test.missing}, [2]bool{wanted, missing}, "%+v", test)
	}
}
