package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// mosh starts its server over ssh, behind a ProxyCommand of its own, and reads the server's key
// from what ssh prints. From then on it is without ssh.
func TestMoshCalls(t *testing.T) {
	env.Tool(t, "mosh")
	c := callersOf(t)
	r := c.works(t, `mkfifo keyboard
	script -qec "stty cols 80 rows 24; mosh --ssh='$SSH -F $CONF' host -- sh -c 'echo hello >$THERE/file'" /dev/null <>keyboard >/dev/null`, "LC_ALL=C.UTF-8")
	require.Contains(t, r.there, "hello")
}
