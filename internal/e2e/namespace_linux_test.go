package e2e

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// In a user namespace of one's own, as unshare -Ur, toolbox and sandboxes make it,
// / belongs to nobody.
func TestStatusInAUserNamespace(t *testing.T) {
	d := newDesk(t, "bin/gpg-bridge")
	d.Mkdir(t, "run")
	for _, place := range []string{"XDG_RUNTIME_DIR", "TMPDIR"} {
		cmd := d.Command(d.Path(d.program), "status")
		cmd.Env = append(cmd.Env, place+"="+d.Path("run"))
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: d.UID, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: d.GID, Size: 1}},
			Credential:  &syscall.Credential{NoSetGroups: true},
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "no bridges\n", string(out))
	}
}
