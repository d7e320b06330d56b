package ports

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gpg-bridge/sshfwd"
)

// errNotPermitted: the host asked for a target that PermitRemoteOpen does not permit.
var errNotPermitted = errors.New("not among PermitRemoteOpen")

// serveSocks lets the host connect to wherever it wants from this side: a
// RemoteForward without a target (ssh(1), -R). ssh reports success before it connects;
// this reports what came of it.
func (f *forwards) serveSocks(conn *sshfwd.Conn) {
	stop := context.AfterFunc(f.ctx, func() { _ = conn.Close() })
	defer stop()
	late := time.AfterFunc(socksTime, func() { _ = conn.Close() })
	target, answer, err := readSocks(conn)
	if late.Stop(); err != nil {
		f.events.Log.Debug("refused a SOCKS client", "error", err)
		conn.End()
		return
	}
	if !f.specs.Permits(target) {
		_ = answer(false)
		f.failed(fmt.Errorf("connect to %q for the host: %w", target, errNotPermitted))
		conn.End()
		return
	}
	sock, err := f.dial(target)
	if err != nil {
		_ = answer(false)
		f.failed(err)
		conn.End()
		return
	}
	if answer(true) != nil {
		_ = sock.Close()
		conn.End()
		return
	}
	conn.Splice(f.ctx, sock)
}
