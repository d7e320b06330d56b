package detached

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each try to start a process has its own Cmd: a Cmd cannot be started twice, even if
// the first start failed.
func TestEachTryHasItsOwnCmd(t *testing.T) {
	forbidden := errors.New("the job does not allow it")
	d := &Process{program: "/nonexistent", args: []string{"keep"}, dir: t.TempDir(), Env: []string{"A=b"}, Stdout: os.Stdout}
	var tried []*exec.Cmd
	try := func(cmd *exec.Cmd) error {
		require.Equal(t, []string{"/nonexistent", "keep"}, cmd.Args)
		require.Equal(t, d.dir, cmd.Dir)
		require.Equal(t, d.Env, cmd.Env)
		require.NotNil(t, cmd.SysProcAttr)
		require.ErrorIs(t, cmd.Start(), os.ErrNotExist, "each try fails for its own reason, as the first")
		tried = append(tried, cmd)
		if len(tried) < 3 {
			return forbidden
		}
		return nil
	}
	ways := []*syscall.SysProcAttr{{}, {}, {}, {}}
	cmd, err := d.startAs(ways, try, func(err error) bool { return errors.Is(err, forbidden) })
	require.NoError(t, err)
	require.Len(t, tried, 3)
	require.Same(t, tried[2], cmd)
	require.NotSame(t, tried[0], tried[1])

	tried = tried[:0]
	_, err = d.startAs(ways, try, func(error) bool { return false })
	require.ErrorIs(t, err, forbidden, "another error is not tried again")
	require.Len(t, tried, 1)
}
