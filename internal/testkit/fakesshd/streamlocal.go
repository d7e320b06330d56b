package fakesshd

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// The names of OpenSSH's PROTOCOL, section 2.4.
const (
	forwardRequest   = "streamlocal-forward@openssh.com"
	cancelRequest    = "cancel-streamlocal-forward@openssh.com"
	forwardedChannel = "forwarded-streamlocal@openssh.com"
	directChannel    = "direct-streamlocal@openssh.com"
)

// maxSocketPath is the longest path that fits into Linux's sun_path with its NUL.
const maxSocketPath = 107

type forwardPayload struct {
	Path string
}

type forwardedPayload struct {
	Path     string
	Reserved string
}

type directPayload struct {
	Path      string
	Reserved0 string
	Reserved1 uint32
}

// handleForward listens on the requested path, as sshd does
// (channel_setup_fwd_listener_streamlocal in channels.c). The path must be absolute; sshd takes
// a relative one from its own working directory.
func handleForward(conn *Conn, req *ssh.Request) (bool, []byte) {
	var payload forwardPayload
	if err := ssh.Unmarshal(req.Payload, &payload); err != nil {
		return false, nil
	}
	if conn.srv.Faults.DenyForward {
		return false, nil
	}
	if err := conn.listen(payload.Path); err != nil {
		conn.srv.Log.Debug("fakesshd: forward refused", "path", payload.Path, "error", err)
		return false, nil
	}
	if hook := conn.srv.Faults.BeforeGrant; hook != nil {
		hook(conn, payload.Path)
	}
	return true, nil
}

// handleCancel closes the listener and leaves its file, as sshd does.
func handleCancel(conn *Conn, req *ssh.Request) (bool, []byte) {
	var payload forwardPayload
	if err := ssh.Unmarshal(req.Payload, &payload); err != nil {
		return false, nil
	}
	conn.mu.Lock()
	listener := conn.listeners[payload.Path]
	delete(conn.listeners, payload.Path)
	conn.mu.Unlock()
	if listener == nil {
		return false, nil
	}
	_ = listener.Close()
	return true, nil
}

func (c *Conn) listen(path string) error {
	if !filepath.IsAbs(path) || len(path) > maxSocketPath {
		return &net.AddrError{Err: "not a socket path", Addr: path}
	}
	if c.srv.StreamLocalBindUnlink {
		_ = os.Remove(path)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return err
	}
	c.mu.Lock()
	old := c.listeners[path]
	c.listeners[path] = listener
	c.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	c.wg.Go(func() { c.forwardLoop(listener, path) })
	return nil
}

func (c *Conn) forwardLoop(listener net.Listener, path string) {
	defer closeWhenDone(c.ctx, listener)()
	for {
		sock, err := listener.Accept()
		if err != nil {
			return
		}
		c.wg.Go(func() { c.forwardOne(sock, path) })
	}
}

func (c *Conn) forwardOne(sock net.Conn, path string) {
	defer func() { _ = sock.Close() }()
	ch, reqs, err := c.openForwarded(path)
	if err != nil {
		return
	}
	c.splice(ch, reqs, sock.(*net.UnixConn))
}

// OpenForwarded opens a forwarded-streamlocal channel for path, whether or not there is such a
// forward. Requests on the channel are refused.
func (c *Conn) OpenForwarded(path string) (ssh.Channel, error) {
	ch, reqs, err := c.openForwarded(path)
	if err != nil {
		return nil, err
	}
	c.wg.Go(func() { ssh.DiscardRequests(reqs) })
	return ch, nil
}

func (c *Conn) openForwarded(path string) (ssh.Channel, <-chan *ssh.Request, error) {
	return c.OpenChannel(forwardedChannel, ssh.Marshal(forwardedPayload{Path: path}))
}

// handleDirect connects to a socket of this host for the client.
func handleDirect(conn *Conn, newCh ssh.NewChannel) {
	var payload directPayload
	if err := ssh.Unmarshal(newCh.ExtraData(), &payload); err != nil {
		_ = newCh.Reject(ssh.ConnectionFailed, "malformed request")
		return
	}
	if conn.srv.Faults.DenyDirect {
		_ = newCh.Reject(ssh.Prohibited, "open failed")
		return
	}
	sock, err := net.Dial("unix", payload.Path)
	if err != nil {
		_ = newCh.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	defer func() { _ = sock.Close() }()
	ch, reqs, err := newCh.Accept()
	if err != nil {
		return
	}
	conn.splice(ch, reqs, sock.(*net.UnixConn))
}

// splice copies both ways and half-closes each. It returns when both ways have
// ended, the client has closed the channel, or the connection has ended.
func (c *Conn) splice(ch ssh.Channel, reqs <-chan *ssh.Request, sock *net.UnixConn) {
	defer closeWhenDone(c.ctx, sock)()
	var wg sync.WaitGroup
	wrote := make(chan struct{}, 1)
	wg.Go(func() {
		ssh.DiscardRequests(reqs)                 // until the channel is closed:
		_ = sock.SetReadDeadline(time.Unix(1, 0)) // nobody reads what it says
	})
	wg.Go(func() {
		_, _ = io.Copy(sock, ch)
		_ = sock.CloseWrite()
		wrote <- struct{}{}
	})
	_, _ = io.Copy(ch, sock)
	_ = ch.CloseWrite()
	<-wrote
	_ = ch.Close()
	wg.Wait()
}

// closeWhenDone closes c when ctx ends; the returned function does so now, and ends the wait.
func closeWhenDone(ctx context.Context, c io.Closer) func() {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return func() {
		stop()
		_ = c.Close()
	}
}
