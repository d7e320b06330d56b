//go:build unix

package target

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAbsolute(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for path, want := range map[string]string{
		"": "", "none": "none", "~/.ssh/id": "~/.ssh/id", "%d/id": "%d/id", "id": filepath.Join(here, "id"), here: here,
	} {
		require.Equal(t, want, AbsolutePath(path))
	}
}

func TestAbsoluteOption(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for option, want := range map[string]string{
		"IdentityFile=key":                      `IdentityFile="` + here + `/key"`,
		"identityfile ../key":                   `identityfile "` + filepath.Dir(here) + `/key"`,
		"UserKnownHostsFile = ~/kh kh":          `UserKnownHostsFile = ~/kh "` + here + `/kh"`,
		`UserKnownHostsFile="a b" /c`:           `UserKnownHostsFile="` + here + `/a b" /c`,
		`UserKnownHostsFile='a b' c\ d "/e f"`:  `UserKnownHostsFile="` + here + `/a b" "` + here + `/c d" "/e f"`,
		`UserKnownHostsFile='/a b' /c`:          `UserKnownHostsFile='/a b' /c`,
		`UserKnownHostsFile="a`:                 `UserKnownHostsFile="a`,
		`"UserKnownHostsFile" a #b`:             `"UserKnownHostsFile" "` + here + `/a"`,
		`User"KnownHostsFile"a "/#"`:            `User"KnownHostsFile""` + here + `/a" "/#"`,
		"IdentityAgent=SSH_AUTH_SOCK":           "IdentityAgent=SSH_AUTH_SOCK",
		"IdentityAgent=$SOCKET":                 "IdentityAgent=$SOCKET",
		"ControlPath=none":                      "ControlPath=none",
		"RevokedHostKeys=NONE":                  "RevokedHostKeys=NONE",
		"UserKnownHostsFile=None":               "UserKnownHostsFile=None",
		"ControlPath=%d/x":                      "ControlPath=%d/x",
		"ProxyCommand=nc %h %p":                 "ProxyCommand=nc %h %p",
		"HostName=dev":                          "HostName=dev",
		"IdentityFileOfMine=key":                "IdentityFileOfMine=key",
		"GlobalKnownHostsFile=/etc/ssh/known_h": "GlobalKnownHostsFile=/etc/ssh/known_h",
	} {
		require.Equal(t, want, absoluteOption(option))
	}
}
