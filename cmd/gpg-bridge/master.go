package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/mux"
	"gpg-bridge/internal/private"
	"gpg-bridge/internal/retry"
	"gpg-bridge/sshfwd"
)

const (
	// masterLook is how often a bridge that waits looks for a control socket.
	masterLook = time.Second

	// masterGrace is how long the user's ssh, which is on its way to the host
	// and will share its connection, has to get there before a bridge logs in
	// itself. One that is quicker makes the second login needless.
	masterGrace = 5 * time.Second

	// masterSoon is how often it is then looked for.
	masterSoon = 50 * time.Millisecond
)

// A connection is what a bridge runs over, as far as its end is concerned.
type connection interface {
	// Wait returns when the connection has ended, and why.
	Wait() error
	// Close ends it and returns when nothing of it is left.
	Close() error
	// CheckAlive ends a connection that gives no sign of life until ctx ends.
	CheckAlive(ctx context.Context)
}

// A master is the ssh of the user's that shares its connection to the target
// (ControlMaster in ssh_config(5)), or where it would be. A bridge in the
// background uses it, and logs in itself only where there is none. The nil
// *master is none.
type master struct {
	path    string // of the control socket
	name    string // of our sockets
	persist time.Duration
	dir     *private.Dir
	log     *slog.Logger

	coming  bool        // the user's ssh is about to listen there
	tried   fs.FileInfo // the control socket at the last try, nil if there was none
	refused bool        // that one would not have us: the next try is our own
}

// newMaster finds out where the user's ssh shares its connection to the target.
// coming: such an ssh has just started.
func newMaster(ctx context.Context, r *sshRun, coming bool) *master {
	config, err := r.config, error(nil)
	if options := r.flags.options; coming && options.JumpHosts != "" {
		// -J was the proxy's; the user's ssh has none, and it is in %C (%j).
		options.JumpHosts = ""
		config, err = sshfwd.Resolve(ctx, options)
	}
	if err != nil || config.ControlPath == "" {
		return nil
	}
	dir, err := private.Runtime()
	if err != nil {
		return nil // which share will have said
	}
	return &master{
		path: config.ControlPath, name: r.target.id, persist: config.ControlPersist,
		dir: dir, log: r.ui.log(r.flags.verbose), coming: coming && config.ControlMaster,
	}
}

func (m *master) close() {
	if m != nil {
		_ = m.dir.Close()
	}
}

// open returns the master's connection, or nil where there is none to use.
func (m *master) open(ctx context.Context) *mux.Link {
	if m == nil {
		return nil
	}
	if m.coming {
		m.await(ctx)
	}
	m.coming = false
	m.tried = m.socket()
	if m.tried == nil || m.refused {
		m.refused = false
		return nil
	}
	link, err := mux.Open(ctx, mux.Options{ControlPath: m.path, Dir: m.dir, Name: m.name})
	if err != nil {
		m.log.Debug("the control socket is not used", "path", m.path, "error", err)
		return nil
	}
	m.log.Debug("over the connection of the user's ssh", "pid", link.PID(), "path", m.path)
	return link
}

// await waits for the control socket, but not for long.
func (m *master) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, masterGrace)
	defer cancel()
	for m.socket() == nil && ctx.Err() == nil {
		_ = retry.Sleep(ctx, masterSoon, nil)
	}
}

// socket returns the control socket, nil for none.
func (m *master) socket() fs.FileInfo {
	info, err := os.Lstat(m.path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 {
		return nil
	}
	return info
}

// appeared reports whether there is a control socket that was not there at the
// last try. One that a killed ssh left behind stays as it is.
func (m *master) appeared() bool {
	now := m.socket()
	return now != nil && (m.tried == nil || !os.SameFile(now, m.tried) || !now.ModTime().Equal(m.tried.ModTime()))
}

// look is when it is time to ask whether it appeared; never for the nil *master.
func (m *master) look() (ticks <-chan time.Time, stop func()) {
	if m == nil {
		return nil, func() {}
	}
	ticker := time.NewTicker(masterLook)
	return ticker.C, ticker.Stop
}

// judge notes how a try ended: a master that refuses a session, as one of a host
// that allows one session only, is not asked again at once.
func (m *master) judge(err error) {
	var refused *mux.RefusedError
	if m != nil && errors.As(err, &refused) {
		m.refused = true
	}
}

// lookFor is for how long a bridge over the master may use it of its own accord:
// as long as the user lets it stay without use.
func (r *sshRun) lookFor() time.Duration {
	if _, shared := r.conn.(*mux.Link); shared {
		return r.master.persist
	}
	return 0
}

// connect makes the connection that the bridge runs over, and that the session,
// if there is one, runs over, too.
func (r *sshRun) connect(ctx context.Context) error {
	if link := r.master.open(ctx); link != nil {
		r.client, r.conn, r.link = nil, link, bridge.Over(link)
		r.board.sharedBy(link.PID())
		return nil
	}
	client, err := r.dial(ctx)
	if err != nil {
		return err
	}
	r.client, r.conn, r.link = client, client, bridge.Over(client)
	r.board.sharedBy(0)
	return nil
}
