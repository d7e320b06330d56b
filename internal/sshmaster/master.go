package sshmaster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"gpg-bridge/internal/link/mux"
	"gpg-bridge/internal/private"
	"gpg-bridge/internal/sshflags"
	"gpg-bridge/sshfwd/config"
)

// Options say how the user's ssh connects.
type Options struct {
	SSH   string   // the program's path
	Env   []string // its environment
	Line  sshflags.Line
	Route Route

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
	path, err := m.controlPath()
	if err != nil {
		return err
	}
	m.path, m.ours = path, true
	if err := m.options.run(ctx, m.options.loginArgs(path), m.options.Stdio.In); err != nil {
		return err
	}
	if m.options.Stays {
		return nil
	}
	m.lease, err = mux.Hold(ctx, path)
	if errors.Is(err, mux.ErrNoMaster) {
		err = errors.New("your ssh is logged in, but does not share its connection")
	}
	return err
}

// controlPath returns where the connection is to be shared: where the user's ssh_config says, if
// it says so, but not if each use would be asked for.
func (m *Master) controlPath() (string, error) {
	if c := m.options.Config; c.ControlMaster && !c.ControlAsks {
		return c.ControlPath, nil
	}
	const letters = 6 // a name that no other process of ours has
	return m.dir.SocketPath("m" + rand.Text()[:letters])
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

// IsLost reports whether the connection has ended.
func (m *Master) IsLost() bool { return !mux.IsShared(context.Background(), m.path) }

// IsOurs reports whether the ssh that is logged in was started by us, with the user's words.
func (m *Master) IsOurs() bool { return m.ours }

func (m *Master) end() {
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
	if m.ours {
		_ = mux.Terminate(context.Background(), m.path)
	}
}
