package pinentry

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
)

func TestMountsHide(t *testing.T) {
	t.Parallel()
	const root, before, proc = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n", "22 1 0:21 / /proc rw,nosuid,nodev shared:12", " - proc proc rw"
	for text, want := range map[string]bool{
		"":                               false,
		root:                             false,
		root + before + proc + "\n":      false,
		before + proc + ",hidepid=0\n":   false,
		before + proc + ",hidepid=off\n": false,
		before + proc + ",hidepid=1\n":   true,
		before + proc + ",gid=54321,hidepid=2\n" + root:       true,
		root + before + proc + ",hidepid=noaccess":            true,
		before + proc + ",hidepid=invisible,subset=pid\n":     true,
		before + proc + ",hidepid=ptraceable\n":               true,
		before + proc + ",hidepid=4\n":                        true,
		before + proc + ",hidepid=new\n":                      true,
		before + proc + ",xhidepid=2\n":                       false,
		before + proc + ",hidepid=2\n" + before + proc:        true,
		"22 1 0:21 / /proc rw - proc proc rw,hidepid=2\n":     true,
		"22 1 0:21 / /jail/proc rw - proc proc hidepid=2\n":   false,
		"22 1 0:21 / /proc rw - tmpfs tmpfs rw,hidepid=2\n":   false,
		"22 1 0:21 / /proc rw\n" + "22 /proc - proc\n - \n\n": false,
	} {
		require.Equal(t, want, mountsHide(text), text)
	}
}

// TestHiddenAgent: an agent that answers, but is not in /proc, is not taken for one that has
// ended, nor does the list of the user's agents count as empty.
func TestHiddenAgent(t *testing.T) {
	t.Parallel()
	home := gpghome.ForTest(t)
	require.NoError(t, home.StartAgent(t.Context()))
	pid := agentOf(t, home)
	hiding := func() bool { return true }
	hidden := view{func(int) (procStat, error) { return procStat{}, fs.ErrNotExist }, exists, hiding}
	seen := view{readStat, exists, hiding}

	for _, v := range []view{hidden, seen} {
		_, err := v.agentOf(pid)
		require.ErrorIs(t, err, ErrUnknown)
		require.NotErrorIs(t, err, ErrNotAgent)
		_, err = v.agents()
		require.ErrorIs(t, err, ErrUnknown)
		for _, none := range []int{0, -1, 1 << 30} {
			_, err = v.agentOf(none)
			require.ErrorIs(t, err, ErrNotAgent)
		}
	}
	_, err := seen.agentOf(os.Getpid())
	require.ErrorIs(t, err, ErrNotAgent)
}
