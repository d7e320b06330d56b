package background

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"gpg-bridge/internal/link/mux"
	"gpg-bridge/internal/private"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/serve"
	"gpg-bridge/sshfwd/config"
)

const (
	// masterLook is how often a waiting bridge looks for a control socket.
	masterLook = time.Second

	// masterGrace is how long a bridge waits, before it logs in itself, for a user's ssh
	// that is connecting to the host and will share its connection. If that is quicker, the
	// second login is not needed.
	masterGrace = 5 * time.Second

	// masterSoon is the time between two looks in that time.
	masterSoon = 50 * time.Millisecond
)

// A master is the user's ssh that shares its connection to the target (ControlMaster in
// ssh_config(5)), or the place where one would listen. A bridge in the background uses it, and
// logs in itself only if there is none. The nil *master is none.
type master struct {
	path    string // of the control socket
	name    string // of our own sockets
	persist time.Duration
	dir     *private.Dir
	log     *slog.Logger

	coming  bool        // the user's ssh is about to listen there
	tried   fs.FileInfo // the control socket at the last try, nil if there was none
	refused bool        // the master refused a session: the next try logs in
}

// newMaster finds out where the user's ssh shares its connection to the target. coming: such an
// ssh has just been started.
func newMaster(ctx context.Context, service *serve.Service, coming bool) *master {
	resolved, err := service.Target.Config, error(nil)
	if spec := service.Target.Spec; coming && spec.JumpHosts != "" {
		spec.JumpHosts = "" // -J was the proxy's flag; the user's ssh has none, and it would change %C (%j)
		options := spec.SSH()
		options.BatchMode, options.Detached = true, true
		resolved, err = config.Resolve(ctx, options)
	}
	if err != nil || resolved.ControlPath == "" {
		return nil
	}
	dir, err := private.Runtime()
	if err != nil {
		return nil // share has reported it
	}
	return &master{
		path: resolved.ControlPath, name: service.Target.ID, persist: resolved.ControlPersist,
		dir: dir, log: service.Log, coming: coming && resolved.ControlMaster,
	}
}

func (m *master) close() {
	if m != nil {
		_ = m.dir.Close()
	}
}

// open returns the master's connection, or nil if there is none to use.
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
	shared, err := mux.Open(ctx, mux.Options{ControlPath: m.path, Dir: m.dir, Name: m.name})
	if err != nil {
		m.log.Debug("the control socket is not used", "path", m.path, "error", err)
		return nil
	}
	m.log.Debug("over the connection of the user's ssh", "pid", shared.SharedBy(), "path", m.path)
	return shared
}

// await waits for the control socket, for masterGrace at most.
func (m *master) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, masterGrace)
	defer cancel()
	for m.socket() == nil && ctx.Err() == nil {
		_ = retry.Sleep(ctx, masterSoon, nil)
	}
}

// socket returns the control socket, nil if there is none.
func (m *master) socket() fs.FileInfo {
	info, err := os.Lstat(m.path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 {
		return nil
	}
	return info
}

// appeared reports whether there is a control socket that was not there at the last try. So a
// socket that a killed ssh left behind counts only once.
func (m *master) appeared() bool {
	now := m.socket()
	return now != nil && (m.tried == nil || !os.SameFile(now, m.tried) || !now.ModTime().Equal(m.tried.ModTime()))
}

// look returns a ticker for calls of appeared; it never ticks for the nil *master.
func (m *master) look() (ticks <-chan time.Time, stop func()) {
	if m == nil {
		return nil, func() {}
	}
	ticker := time.NewTicker(masterLook)
	return ticker.C, ticker.Stop
}

// judge notes how a try ended: if the master refused a session, as for a host that allows only
// one, it is not asked again at once.
func (m *master) judge(err error) {
	var refused *mux.RefusedError
	if m != nil && errors.As(err, &refused) {
		m.refused = true
	}
}

// lookFor returns bridge.Options.LookFor for a connection: a master's is not used by looks for
// longer than the user lets it stay without use.
func (m *master) lookFor(connection serve.Connection) time.Duration {
	if connection.SharedBy() == 0 {
		return 0
	}
	return m.persist
}
