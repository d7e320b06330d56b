//go:build unix

package agentside

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/env"
)

// greetingSocket starts a socket that greets and closes.
func greetingSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(env.ShortDir(t), "S")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "OK\n")
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return path
}

func writeSocketFile(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(env.ShortDir(t), "S")
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
	require.NoError(t, os.Chmod(path, mode)) // whatever the umask
	return path
}

func tryDial(t *testing.T, l *Locator) error {
	t.Helper()
	at, err := l.Locate(t.Context())
	require.NoError(t, err)
	conn, err := at.Dial(t.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	require.NoError(t, at.Authenticate(conn))
	said, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "OK\n", string(said))
	return nil
}

func TestRedirect(t *testing.T) {
	target := greetingSocket(t)
	l := &Locator{Env: []string{"WHERE=nowhere", "WHERE=" + filepath.Dir(target)}}

	l.AgentSocket = writeSocketFile(t, "%Assuan%\nsocket="+target+"\n", 0o644)
	require.NoError(t, tryDial(t, l), "a redirect holds no secret")
	l.AgentSocket = writeSocketFile(t, "%Assuan%\nsocket=${WHERE}/S\n", 0o600)
	require.NoError(t, tryDial(t, l))

	l.AgentSocket = writeSocketFile(t, "%Assuan%\nsocket="+l.AgentSocket+"\n", 0o600)
	err := tryDial(t, l)
	requireHint[*SocketError](t, err)
	require.ErrorIs(t, err, errRedirectTwice)

	l.AgentSocket = writeSocketFile(t, "%Assuan%\nsocket=${WHERE}/gone\n", 0o600)
	gone := requireHint[*NoAgentError](t, tryDial(t, l))
	require.Equal(t, filepath.Dir(target)+"/gone", gone.Path)

	l.AgentSocket = writeSocketFile(t, "%Assuan%\nsocket=${WHERE\n", 0o600)
	require.Equal(t, l.AgentSocket, requireHint[*SocketError](t, tryDial(t, l)).Path)
}

func TestThisEnvironmentIsUsedWithoutAnother(t *testing.T) {
	target := greetingSocket(t)
	t.Setenv("GPG_BRIDGE_WHERE", filepath.Dir(target))
	l := &Locator{AgentSocket: writeSocketFile(t, "%Assuan%\nsocket=${GPG_BRIDGE_WHERE}/S\n", 0o600)}
	require.NoError(t, tryDial(t, l))
}

func TestPathThatIsNoSocket(t *testing.T) {
	dir := env.ShortDir(t)
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for name, path := range map[string]string{
		"directory": dir,
		"fifo":      fifo,
		"device":    "/dev/null",
		"empty":     writeSocketFile(t, "", 0o600),
		"text":      writeSocketFile(t, "hello\n", 0o600),
		"huge":      writeSocketFile(t, strings.Repeat("x", 1<<20), 0o600),
		"too long":  writeSocketFile(t, "%Assuan%\nsocket="+strings.Repeat("x", 495)+"\n", 0o600),
	} {
		t.Run(name, func(t *testing.T) {
			failed := requireHint[*SocketError](t, tryDial(t, &Locator{AgentSocket: path}))
			require.Equal(t, path, failed.Path)
			require.Equal(t, 1, strings.Count(failed.Error(), path), "%s", failed)
		})
	}
	err := tryDial(t, &Locator{AgentSocket: writeSocketFile(t, "hello\n", 0o600)})
	requireHint[*assuan.SocketFileError](t, err)
}

// The path may change between the look and the open; a FIFO must not hold the
// open up.
func TestOpenedFileIsJudged(t *testing.T) {
	fifo := filepath.Join(env.ShortDir(t), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	f, err := os.OpenFile(fifo, os.O_RDONLY|openFlags, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = parseOpenFile(f)
	require.ErrorContains(t, err, "neither a socket nor a file")
}

func TestPathTooLong(t *testing.T) {
	path := filepath.Join(env.ShortDir(t), strings.Repeat("x", 120))
	_, err := dialUnix(t.Context(), path)
	require.ErrorContains(t, err, "too long")
}

func TestSecretOfOthersIsRefused(t *testing.T) {
	const native = "1\n0123456789abcdef" // nothing listens at port 1
	const cygwin = "!<socket >1 s 00000000-00000000-00000000-00000000\x00"
	for _, content := range []string{native, cygwin} {
		private := writeSocketFile(t, content, 0o600)
		requireHint[*NoAgentError](t, tryDial(t, &Locator{AgentSocket: private}))
		link := filepath.Join(env.ShortDir(t), "link")
		require.NoError(t, os.Symlink(private, link))
		requireHint[*NoAgentError](t, tryDial(t, &Locator{AgentSocket: link}))

		for _, mode := range []os.FileMode{0o604, 0o640, 0o644, 0o602, 0o620, 0o666} {
			open := writeSocketFile(t, content, mode)
			err := tryDial(t, &Locator{AgentSocket: open})
			require.ErrorIs(t, err, errOpenFile, "%v", mode)
			require.Contains(t, requireHint[*SocketError](t, err).Hint(), "chmod 600")

			link := filepath.Join(filepath.Dir(open), "link")
			require.NoError(t, os.Symlink(open, link))
			require.ErrorIs(t, tryDial(t, &Locator{AgentSocket: link}), errOpenFile, "the file counts, not the link")
		}
		if os.Getuid() == 0 {
			require.NoError(t, os.Chown(private, 65534, 65534))
			require.ErrorIs(t, tryDial(t, &Locator{AgentSocket: private}), errForeignFile)
		}
	}
}

func TestAuthenticateOnlyOwnConnections(t *testing.T) {
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	require.Error(t, new(Endpoint).Authenticate(one))
}

// fullSocket listens with the smallest backlog and fills it. accept takes one
// of those that wait.
func fullSocket(t *testing.T) (path string, accept func()) {
	t.Helper()
	path = filepath.Join(env.ShortDir(t), "S")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	syscall.CloseOnExec(fd)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	require.NoError(t, syscall.Listen(fd, 0))
	for range 10 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			if !refused(err) {
				require.ErrorIs(t, err, syscall.EAGAIN)
				return path, func() {
					taken, _, err := syscall.Accept(fd)
					require.NoError(t, err)
					t.Cleanup(func() { _ = syscall.Close(taken) })
				}
			}
			break
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Skip("a full backlog does not say EAGAIN on this system")
	return "", nil
}

func TestFullBacklogIsTriedAgain(t *testing.T) {
	path, accept := fullSocket(t)
	at, err := (&Locator{AgentSocket: path}).Locate(t.Context())
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = at.Dial(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, requireHint[*SocketError](t, err), "too many connections waiting")

	dialled := make(chan error, 1)
	go func() {
		conn, err := at.Dial(t.Context())
		if err == nil {
			err = conn.Close()
		}
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatalf("the backlog is full, and the dial says %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	accept()
	select {
	case err := <-dialled:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the dial did not come through")
	}
}
