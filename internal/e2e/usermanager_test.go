//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// userManager is what starts systemd's user manager for an account on a machine
// that need not have been booted by systemd: in a mount namespace where it seems
// so, and in control groups that are the account's. It serves gpg-agent.socket
// alone, which is Debian's own unit.
const userManager = `
set -e
mkdir -p /run/systemd
mount -t tmpfs -o mode=755 tmpfs /run/systemd
mkdir /run/systemd/system
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
	[ -e $hierarchy/cgroup.procs ] || continue
	mkdir -p $hierarchy/$NAME
	chown -R $NAME $hierarchy/$NAME
	echo $$ >$hierarchy/$NAME/cgroup.procs
done
exec setpriv --reuid $NAME --regid $NAME --clear-groups env -i HOME=$HOME USER=$NAME XDG_RUNTIME_DIR=/run/user/$UID_ \
	PATH=/usr/bin:/bin $SYSTEMD --user --unit=gpg-agent.socket --log-target=console
`

// socketUnit starts a user manager with gpg-agent.socket, as the account's next
// log-in does, and returns once its listener is at the path. Where systemd cannot
// be started, what it does is done in its place. end ends it; the socket stays.
func (b *background) socketUnit(t *testing.T) (end func()) {
	t.Helper()
	before, err := os.Lstat(b.socket(t))
	require.NoError(t, err)
	taken := func() bool {
		now, err := os.Lstat(b.socket(t))
		return err == nil && !os.SameFile(before, now)
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-c", userManager)
	cmd.Env = []string{
		"NAME=" + b.host.Name, "HOME=" + b.host.Home, fmt.Sprintf("UID_=%d", b.host.UID),
		"SYSTEMD=/usr/lib/systemd/systemd", "PATH=" + os.Getenv("PATH"),
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ended := func() bool { return len(done) > 0 }
	eventually(t, func() bool { return taken() || ended() }, "the user manager does nothing")
	if ended() {
		said, _ := os.ReadFile(log.Name())
		t.Logf("systemd cannot be started here, so it is played: %s", said)
		return b.playSocketUnit(t)
	}
	t.Log("a user manager of systemd's has taken the socket")
	end = sync.OnceFunc(func() {
		_ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
		<-done
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + b.host.Name)
		for _, group := range append(groups, "/sys/fs/cgroup/"+b.host.Name) {
			_ = exec.Command("find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
		}
	})
	t.Cleanup(end)
	return end
}

// playSocketUnit does as systemd (src/core/socket.c and src/basic/socket-label.c
// of version 252): it unlinks and binds, and hands the listener to an agent that
// it starts for the first who comes.
func (b *background) playSocketUnit(t *testing.T) (end func()) {
	t.Helper()
	path := b.socket(t)
	require.NoError(t, os.Remove(path))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.Chown(path, b.host.UID, b.host.GID))
	file, err := listener.File()
	require.NoError(t, err)
	agent := b.host.Command("sh", "-c", "LISTEN_PID=$$ exec gpg-agent --supervised")
	agent.Env = append(agent.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES=std")
	agent.ExtraFiles = []*os.File{file}
	stop, played := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(played)
		if awaitClient(file, stop) {
			_ = agent.Run()
		}
	}()
	end = sync.OnceFunc(func() {
		close(stop)
		for _, pid := range b.agents() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-played
		_, _ = listener.Close(), file.Close()
	})
	t.Cleanup(end)
	return end
}

// awaitClient returns true when somebody waits to be accepted.
func awaitClient(listener *os.File, stop <-chan struct{}) bool {
	for {
		select {
		case <-stop:
			return false
		default:
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(listener.Fd()), Events: unix.POLLIN}}, 50)
		if n > 0 || err != nil && !errors.Is(err, syscall.EINTR) {
			return err == nil
		}
	}
}
