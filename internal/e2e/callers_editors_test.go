package e2e

import "testing"

// What editors run, from their own logs and sources. $FREE is where they listen.
func TestEditorsCalls(t *testing.T) {
	c := callersOf(t)
	for _, script := range []string{
		// VS Code Remote-SSH.
		`"$SSH" -V`,
		`printf 'echo running; uname -s\n' | "$SSH" -F "$CONF" -v -T -D "$FREE" -o ConnectTimeout=15 host 2>/dev/null`,
		`printf 'echo running; uname -s\nexit 7\n' | "$SSH" -F "$CONF" -T -D "$FREE" "host" bash`,
		`printf 'echo running\n' | "$SSH" -F "$CONF" -T -o ClearAllForwardings=true "host" bash`,
		`printf 'echo running\n' | "$SSH" -T -D "$FREE" -F "$CONF" -o RemoteCommand=none host sh`,
		`"$SSH" -F "$CONF" -o RemoteCommand='echo instead' host; "$SSH" -F "$CONF" -o RemoteCommand='echo instead' host sh`,
		// JetBrains Gateway: a forward to the IDE's backend, and commands beside it.
		`"$SSH" -F "$CONF" -o ServerAliveInterval=10 -o ExitOnForwardFailure=yes -N -L "$FREE:127.0.0.1:$PORT" host 2>/dev/null & pid=$!
		until "$SSH" -F "$CONF" -p "$FREE" -o HostKeyAlias="[127.0.0.1]:$PORT" host echo through 2>/dev/null; do sleep 0.05; done
		kill $pid; wait $pid`,
		// TRAMP.
		`printf 'echo hello\n' | "$SSH" -F "$CONF" -q -l "$LOGIN" -p "$PORT" -o ControlMaster=auto -o ControlPath='tramp.%C' -o ControlPersist=no -e none host`,
		`"$SSH" -F "$NOPORT" -l "$LOGIN" -p "$PORT" -e none -t -t -o RemoteCommand='echo hello; exec true' host </dev/null`,
	} {
		c.same(t, script)
	}
	c.signs(t, `printf './sign signature\n' | "$SSH" -F "$CONF" -v -T -D "$FREE" -o ConnectTimeout=15 host bash 2>/dev/null`)
}
