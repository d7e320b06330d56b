package sshmaster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"gpg-bridge/internal/link/mux"
	"gpg-bridge/internal/private"
	"gpg-bridge/internal/sshflags"
	"gpg-bridge/sshfwd/config"
)

const (
	// privatePrefix is how the names of control sockets of ours begin in the runtime directory.
	privatePrefix = "m"

	// letters is how many random ones follow in a name that no other process of ours has.
	letters = 6

	// sweepPatience bounds the look whether anybody listens at an old socket.
	sweepPatience = 50 * time.Millisecond

	// mostPath is the length that a control socket's path may have: ssh makes it under a name
	// with 17 more characters, and a socket's address has 104 on macOS (unix(4)).
	mostPath = 104 - 17 - 1

	// lostPatience is how much later than its sessions a connection's own end may show.
	lostPatience = 500 * time.Millisecond
)

// Options say how the user's ssh connects.
type Options struct {
	SSH        string   // the program's path
	Env        []string // the environment of the one that logs in
	SessionEnv []string // of the one that is the session
	Line       sshflags.Line
	Route      Route

	// Stays: the ssh that logs in is all, and stays in the background (-f and -N).
	Stays bool

	Config *config.Config
	Name   string // of the bridge's sockets: the target's ID
	Stdio  Stdio
	Log    *slog.Logger
}

// A Master is an ssh of the user's that is logged in and shares its connection. Close must be
// called.
type Master struct {
	*mux.Link
	options *Options
	path    string     // the control socket
	shareAt string     // where others find it, too; "" for nowhere
	ours    bool       // we started it, and it ends with the last session
	lease   *mux.Lease // keeps it from ending meanwhile; nil for one that we did not start
	dir     *private.Dir

	left, abandoned bool
}

// Connect has the user's ssh log in, which may ask its user what it likes on the terminal, or
// finds the ssh that shares its connection to the host already. The error is an *ExitError if
// ssh has failed, and has said why.
func Connect(ctx context.Context, o Options) (*Master, error) {
	dir, err := private.Runtime()
	if err != nil {
		return nil, err
	}
	sweep(ctx, dir)
	m := &Master{options: &o, dir: dir}
	if err := m.connect(ctx); err != nil {
		m.end()
		return nil, err
	}
	return m, nil
}

func (m *Master) connect(ctx context.Context) (err error) {
	c := m.options.Config
	if c.ControlPath != "" && mux.IsShared(ctx, c.ControlPath) {
		m.path = c.ControlPath
	} else if err := m.logIn(ctx); err != nil {
		return err
	}
	m.Link, err = mux.Open(ctx, mux.Options{ControlPath: m.path, Dir: m.dir, Name: m.options.Name})
	if err != nil {
		return fmt.Errorf("the connection of your ssh cannot be used: %w", err)
	}
	m.options.Log.Info("over the connection of the user's ssh", "pid", m.SharedBy(), "path", m.path)
	return nil
}

// logIn starts an ssh, which returns when it is logged in and has gone to the background.
func (m *Master) logIn(ctx context.Context) error {
	if err := m.choosePath(); err != nil {
		return err
	}
	m.ours = true
	err := m.options.logIn(ctx, m.options.loginArgs(m.path), m.isTaken(ctx))
	if errors.Is(err, errTaken) {
		m.ours = false
		return nil
	}
	if err != nil || m.options.Stays {
		return err
	}
	if m.lease, err = mux.Hold(ctx, m.path); errors.Is(err, mux.ErrNoMaster) {
		err = errors.New("your ssh is logged in, but does not share its connection")
	}
	if err == nil && m.shareAt != "" {
		m.share(ctx)
	}
	return err
}

// choosePath chooses where the connection is shared: where ssh_config says, if it says so, but not
// if each use would be asked for. If that is not to outlast us, ssh gets a path beside it, which no
// other ssh wants: one that finds its path taken when it is logged in shares nothing, and with -N
// stays where it is (muxserver_listen in OpenSSH's mux.c).
func (m *Master) choosePath() (err error) {
	c := m.options.Config
	switch beside := c.ControlPath + "." + rand.Text()[:letters]; {
	case !c.ControlMaster || c.ControlAsks:
		m.path, err = m.dir.SocketPath(privatePrefix + rand.Text()[:letters])
	case m.options.Stays || m.options.persists(c.ControlPath) || len(beside) > mostPath:
		m.path = c.ControlPath
	default:
		m.path, m.shareAt = beside, c.ControlPath
	}
	return err
}

// share lets others find the connection at the user's ControlPath, unless another ssh shares its
// own there by now.
func (m *Master) share(ctx context.Context) {
	err := os.Link(m.path, m.shareAt)
	if errors.Is(err, fs.ErrExist) && !mux.IsShared(ctx, m.shareAt) && isSocket(m.shareAt) { // of a killed ssh
		_ = os.Remove(m.shareAt)
		err = os.Link(m.path, m.shareAt)
	}
	if err != nil {
		m.options.Log.Info("the connection is not shared", "path", m.shareAt, "error", err)
		m.shareAt = ""
	}
}

// unshare removes what share has made.
func (m *Master) unshare() {
	ours, err := os.Lstat(m.path)
	shared, sharedErr := os.Lstat(m.shareAt)
	if err == nil && sharedErr == nil && os.SameFile(ours, shared) {
		_ = os.Remove(m.shareAt)
	}
}

func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// isTaken returns what tells whether another ssh shares its connection at the path that ours is to
// have; nil if none can.
func (m *Master) isTaken(ctx context.Context) func() bool {
	if m.path != m.options.Config.ControlPath {
		return nil
	}
	return func() bool { return mux.IsShared(ctx, m.path) }
}

// Close closes the link. A master that we started gives up its control socket, and ends with
// its last connection, unless ssh_config lets it stay.
func (m *Master) Close() error {
	err := m.Link.Close()
	m.end()
	return err
}

// Path is the control socket.
func (m *Master) Path() string { return m.path }

// Leave has Close leave a master that we started to its own end, for a session in the background
// which uses it.
func (m *Master) Leave() { m.left = true }

// Abandon has Close end a master that we started with all its connections, as a signal ends ssh.
func (m *Master) Abandon() { m.abandoned = true }

// IsLost reports whether the connection has ended, or ends just now.
func (m *Master) IsLost() bool {
	late := time.NewTimer(lostPatience)
	defer late.Stop()
	select {
	case <-m.Ended():
		return true
	case <-late.C:
		return false
	}
}

// IsOurs reports whether the ssh that is logged in was started by us, with the user's words.
func (m *Master) IsOurs() bool { return m.ours }

func (m *Master) end() {
	if m.shareAt != "" && !m.left {
		m.unshare()
	}
	if m.ours && !m.left && !m.options.persists(m.path) {
		leave := mux.Retire
		if m.abandoned {
			leave = mux.Terminate
		}
		_ = leave(context.Background(), m.path) // bounded
	}
	if m.lease != nil {
		_ = m.lease.Close()
	}
	_ = m.dir.Close()
}

// End ends a master that we started, and its forwards.
func (m *Master) End() {
	if m.ours && !m.options.persists(m.path) {
		_ = mux.Terminate(context.Background(), m.path)
	}
}
