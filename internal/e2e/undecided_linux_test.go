package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
)

// While nobody can find out where the agent would ask, what needs a prompt is refused, and
// the bridge is not up. When it can be found out again, it is, with nobody's help.
func TestBridgeThatRefusesIsNotUp(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	d.ssh(t)
	dir := env.ShortDir(t)
	works := filepath.Join(dir, "works")
	gpgconf := "#!/bin/sh\ncase $1 in --list-components) [ -e " + works + " ] || exit 1;; esac\nexec " + env.Tool(t, "gpgconf") + ` "$@"`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gpgconf"), []byte(gpgconf), 0o755))
	b := d.background(t)
	up := exec.Command(program, "up", "-F", d.sshd.ConfigFile, "host")
	up.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	require.Zero(t, launchAs(t, up, d.laptop, nil).wait(t).code)

	for range 3 {
		require.Equal(t, noPinentry, d.converse(t).use(t, d.key))
		status := b.await(t, func(s share.Status) bool { return s.State != share.Up })
		require.Equal(t, share.NoAgent, status.State)
		require.Contains(t, status.Problem.Text, "it could not be found out where pinentry would ask")
		require.Contains(t, status.Problem.Remedy, "gpg-connect-agent")
	}
	require.NoError(t, os.WriteFile(works, nil, 0o600))
	b.await(t, func(s share.Status) bool { return s.State == share.Up })
	require.Equal(t, noPinentry, d.converse(t).use(t, d.key))
	status := b.await(t, func(s share.Status) bool { return s.Problem != nil && s.Problem.Kind == share.RefusedPrompt })
	require.Equal(t, share.Up, status.State, "it is known why")
	require.Contains(t, status.Problem.Text, " ask on "+d.name(t))
}
