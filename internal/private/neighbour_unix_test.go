//go:build unix

package private

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// neighbour is another user of this machine: nobody.
const neighbour = 65534

// asNeighbour runs a script as another user and returns what it printed, and
// whether it succeeded.
func asNeighbour(t *testing.T, script string, args ...string) (said string, ok bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		env.Missing(t, "not root: nobody else can be played")
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: neighbour, Gid: neighbour}}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// shared returns a directory like /tmp.
func shared(t *testing.T) string {
	t.Helper()
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	return dir
}

// A neighbour who comes first does not get our directory, whatever they put there.
func TestNeighbourWasThereFirst(t *testing.T) {
	victim := filepath.Join(env.ShortDir(t), "mine") // what a link could lead to
	require.NoError(t, os.Mkdir(victim, 0o700))
	for name, c := range map[string]struct{ script, reason string }{
		"directory":         {`mkdir -m 700 "$1"`, "it belongs to user 65534"},
		"open directory":    {`mkdir -m 777 "$1"`, "it belongs to user 65534"},
		"link to ours":      {`ln -s "$2" "$1"`, "it is a symbolic link"},
		"link to his":       {`mkdir "$1.d" && ln -s "$1.d" "$1"`, "it is a symbolic link"},
		"link to nothing":   {`ln -s /nowhere "$1"`, "it is a symbolic link"},
		"file":              {`echo >"$1"`, "it is not a directory"},
		"FIFO":              {`mkfifo "$1"`, "it is not a directory"},
		"relative dot link": {`ln -s . "$1"`, "it is a symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(shared(t), "gpg-bridge-0")
			said, ok := asNeighbour(t, c.script, path, victim)
			require.True(t, ok, said)
			_, err := Open(path)
			requireInsecure(t, err, path, c.reason)
		})
	}
	left, err := os.ReadDir(victim)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A neighbour cannot list, read, write, replace or connect to what is ours.
func TestNeighbourFindsItClosed(t *testing.T) {
	d := open(t, filepath.Join(shared(t), "d"))
	require.NoError(t, d.Write("secret", []byte("precious")))
	path, err := d.SocketPath("socket")
	require.NoError(t, err)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	env.Tool(t, "socat")
	for name, script := range map[string]string{
		"list":    `ls "$1"`,
		"read":    `cat "$1/secret"`,
		"write":   `echo >>"$1/secret"`,
		"add":     `echo >"$1/new"`,
		"remove":  `rm -f "$1/secret" && ! test -e "$1/secret" && test -r "$1"`,
		"move":    `mv "$1" "$1.his"`,
		"connect": `socat -u /dev/null "UNIX-CONNECT:$1/socket"`,
		"link":    `ln "$1/secret" "$1.link"`,
	} {
		said, ok := asNeighbour(t, script, d.Path())
		require.False(t, ok, "%s: %s", name, said)
	}
	for _, file := range []string{"", "secret"} {
		info, err := os.Stat(filepath.Join(d.Path(), file))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077)
	}
	data, err := d.Read("secret", 100)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
}

// A directory that others could have replaced is not used.
func TestPlacesThatAreNotSafe(t *testing.T) {
	for name, c := range map[string]struct {
		mode   os.FileMode
		uid    int
		reason string
	}{
		"another's":                 {0o755, neighbour, "it belongs to user 65534"},
		"open to all":               {0o777, os.Geteuid(), "others may exchange what is in it"},
		"open to the group":         {0o770, os.Geteuid(), "others may exchange what is in it"},
		"another's, and all may it": {0o777 | os.ModeSticky, neighbour, "it belongs to user 65534"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 && c.uid == neighbour {
				env.Missing(t, "not root: nothing can be given away")
			}
			place := filepath.Join(env.ShortDir(t), "place")
			require.NoError(t, os.MkdirAll(filepath.Join(place, "sub"), 0o700))
			require.NoError(t, os.Chown(place, c.uid, -1))
			require.NoError(t, os.Chmod(place, c.mode))
			for _, path := range []string{filepath.Join(place, "d"), filepath.Join(place, "sub", "d")} {
				_, err := Open(path)
				requireInsecure(t, err, place, c.reason)
			}
		})
	}
}

// A directory of the user's that others may enter is not used.
func TestOwnDirectoryThatIsOpen(t *testing.T) {
	path := filepath.Join(env.ShortDir(t), "d")
	require.NoError(t, os.Mkdir(path, 0o750))
	_, err := Open(path)
	requireInsecure(t, err, path, "others may use it")
}

// Files that are not as we create them are not touched, and a FIFO does not block.
func TestFilesThatAreNotOurs(t *testing.T) {
	d := open(t, filepath.Join(env.ShortDir(t), "d"))
	outside := filepath.Join(env.ShortDir(t), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("precious"), 0o600))
	require.NoError(t, d.Write("file", []byte("ours")))
	in := func(name string) string { return filepath.Join(d.Path(), name) }
	require.NoError(t, os.Symlink(outside, in("out")))
	require.NoError(t, os.Symlink("file", in("in")))
	require.NoError(t, os.Symlink("nothing", in("dangling")))
	require.NoError(t, syscall.Mkfifo(in("fifo"), 0o600))
	require.NoError(t, os.Mkdir(in("dir"), 0o700))
	require.NoError(t, os.WriteFile(in("open"), nil, 0o600))
	require.NoError(t, os.Chmod(in("open"), 0o640))
	names := []string{"out", "in", "dangling", "fifo", "dir", "open"}
	if os.Geteuid() == 0 {
		require.NoError(t, os.WriteFile(in("foreign"), nil, 0o600))
		require.NoError(t, os.Chown(in("foreign"), neighbour, -1))
		names = append(names, "foreign")
	}
	for _, name := range names {
		_, err := d.Read(name, 100)
		require.Error(t, err, name)
		_, err = d.Append(name)
		require.Error(t, err, name)
		_, err = d.Create(name)
		require.Error(t, err, name)
	}
	// Writing puts a file in the place of a link, and nothing through it.
	require.NoError(t, d.Write("out", []byte("new")))
	require.NoError(t, d.Write("fifo", []byte("new")))
	data, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
}

// The directory may be moved away from its path; its methods go on working in it.
func TestMovedDirectory(t *testing.T) {
	place := env.ShortDir(t)
	d := open(t, filepath.Join(place, "d"))
	require.NoError(t, os.Rename(d.Path(), d.Path()+".moved"))
	require.NoError(t, os.Mkdir(d.Path(), 0o777))
	require.NoError(t, d.Write("a", []byte("x")))
	require.NoFileExists(t, filepath.Join(place, "d", "a"))
	require.FileExists(t, filepath.Join(place, "d.moved", "a"))
}

// Somebody who replaces a directory by a link and back, as fast as they can, never makes us
// use the one that the link leads to.
func TestExchangeRace(t *testing.T) {
	place := env.ShortDir(t)
	trap, path := filepath.Join(place, "trap"), filepath.Join(place, "d")
	require.NoError(t, os.Mkdir(trap, 0o700))
	stop := make(chan struct{})
	var exchanger sync.WaitGroup
	exchanger.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Symlink("trap", path)
			_ = os.Remove(path)
			_ = os.Mkdir(path, 0o700)
			_ = os.RemoveAll(path)
		}
	})
	opened := 0
	for range 3000 {
		if d, err := Open(path); err == nil {
			opened++
			_ = d.Write("a", []byte("x"))
			_ = d.Close()
		}
	}
	close(stop)
	exchanger.Wait()
	left, err := os.ReadDir(trap)
	require.NoError(t, err)
	require.Empty(t, left)
	t.Logf("opened %d times of 3000", opened)
}

func TestRuntime(t *testing.T) {
	place := env.ShortDir(t)
	mine, others := filepath.Join(place, "mine"), filepath.Join(place, "open")
	require.NoError(t, os.Mkdir(mine, 0o700))
	require.NoError(t, os.Mkdir(others, 0o755))
	t.Setenv("TMPDIR", place)
	fallback := filepath.Join(place, "gpg-bridge-"+strconv.Itoa(os.Geteuid()))
	for xdg, want := range map[string]string{
		mine: filepath.Join(mine, "gpg-bridge"), others: fallback, "": fallback, "relative": fallback, "/nowhere": fallback,
	} {
		t.Setenv("XDG_RUNTIME_DIR", xdg)
		for range 2 { // made, and found
			d, err := Runtime()
			require.NoError(t, err)
			require.Equal(t, want, d.Path())
			require.NoError(t, d.Close())
		}
	}
}

// Another user's process is recognized from either end of a socket.
func TestPeer(t *testing.T) {
	env.Tool(t, "socat")
	dir := shared(t)
	ours := filepath.Join(dir, "ours")
	l, err := net.Listen("unix", ours)
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Chmod(ours, 0o777))

	conn, err := net.Dial("unix", ours)
	require.NoError(t, err)
	require.NoError(t, CheckPeer(conn))
	accepted, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, CheckPeer(accepted))
	_, _ = accepted.Close(), conn.Close()

	said, ok := asNeighbour(t, `echo | socat -u STDIN "UNIX-CONNECT:$1"`, ours)
	require.True(t, ok, said)
	accepted, err = l.Accept()
	require.NoError(t, err)
	var peer *PeerError
	require.ErrorAs(t, CheckPeer(accepted), &peer)
	require.Equal(t, neighbour, peer.UID)
	require.NotEmpty(t, peer.Hint())
	_ = accepted.Close()

	conn, err = net.Dial("unix", listenAsNeighbour(t, dir))
	require.NoError(t, err)
	require.ErrorAs(t, CheckPeer(conn), &peer)
	_ = conn.Close()
	require.NoError(t, CheckPeer(nil))
}

// listenAsNeighbour makes another user listen at a socket.
func listenAsNeighbour(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "his")
	cmd := exec.Command("socat", "-d", "-d", "UNIX-LISTEN:"+path+",fork", "EXEC:/bin/cat")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: neighbour, Gid: neighbour}}
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, stderr)
		_ = cmd.Wait()
	})
	notices := bufio.NewReader(stderr)
	for line := ""; !strings.Contains(line, "listening on"); {
		line, err = notices.ReadString('\n')
		require.NoError(t, err)
	}
	return path
}
