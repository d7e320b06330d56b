package e2e

import (
	"testing"

	"gpg-bridge/internal/testkit/env"
)

// Two lines of sh under the name ssh, first in PATH: who looks for ssh finds ours, and ours
// finds the real one.
func TestCallsUnderTheNameOfSSH(t *testing.T) {
	env.Tool(t, "pdsh")
	c := callersOf(t)
	c.host.WriteFile(t, ".bashrc", []byte("docker() { cat; }\n"), 0o600)
	for _, script := range []string{
		`ssh host echo hello; ssh -G host | sort | head -n 3; ssh -Q mac | head -n 1; ssh -V; ssh host exit 3`,
		`echo one >a; scp -q -S ssh a "host:$THERE/b" && echo "get $THERE/b c" | sftp -q -b - -S ssh host`,
		`echo one >a; rsync a "host:$THERE/b" && rsync "host:$THERE/b" c`,
		`git ls-remote "host:$THERE/nothing"`,
		`pdsh -R ssh -l "$LOGIN" -w host 'echo hello; exit 3'`,
		`echo hello | ssh -l "$LOGIN" -p "$PORT" -o ConnectTimeout=30 -T -- host docker system dial-stdio`, // docker -H ssh://host
	} {
		c.sameNamed(t, script)
	}
	c.signs(t, `rsync --rsync-path='./sign signature; rsync' "$BIN/bridge" "host:$THERE"`, c.first(t, c.ours()))
}
