package background

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/target"
)

// The process gets what the user has said. It adopts for itself what a proxy's line in
// ssh_config says, which names files as they are named there.
func TestLauncherPassesOnWhatTheUserSaid(t *testing.T) {
	given, adopted := target.NewSpec("dev"), target.NewSpec("dev")
	given.Keys, adopted.Keys, adopted.AgentSocket = "none", "none", "relative/S"
	l := &Launcher{Target: &target.Target{ID: "00", Name: "dev", Spec: adopted}, Spec: given, Pin: true}
	require.Equal(t, []string{"keep", "--id=00", "--keys", "none", "--pin", "--", "dev"}, l.args())
}
