package background

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/sshfwd/config"
)

// overIdle is how long after its last use the path on the host is still looked at, since each
// look keeps the connection from ending for want of use (ControlPersist).
const overIdle = 10 * time.Second

// idleOver returns how long after its last use the path is looked at; 0, with no session that the
// connection is for, is for ever: that one stays without use.
func idleOver(o Options) time.Duration {
	if o.Session == 0 {
		return 0
	}
	return overIdle
}

// errMasterGone ends a bridge that was to last as long as the connection of the user's ssh.
var errMasterGone = errors.New("the user's ssh has ended")

// overTarget is the target of a bridge that uses the connection at the control path over, and
// never logs in: its address is known, and ssh_config is not asked. address is Target.Address.
func overTarget(o Options) (*target.Target, error) {
	at := strings.LastIndexByte(o.Address, '@')
	user := o.Address[:max(at, 0)]
	host, port, err := net.SplitHostPort(o.Address[at+1:])
	number, portErr := strconv.Atoi(port)
	if err := errors.Join(err, portErr); err != nil {
		return nil, fmt.Errorf("bad --address %q: %w", o.Address, err)
	}
	return &target.Target{
		ID: o.ID, Name: o.Spec.Host, Address: o.Address, Spec: o.Spec,
		Config: &config.Config{
			Destination: o.Spec.Host, OriginalHost: o.Spec.Host, Hostname: host, User: user, Port: number,
			ControlPath: o.Over, ControlPersist: idleOver(o), Detached: true,
		},
	}, nil
}

// standAside waits, as a bridge of one connection of the user's ssh, while another process is the
// bridge. It reports false when the connection has ended.
func (p *process) standAside(ctx context.Context) bool {
	p.ready()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shared := p.master.open(ctx)
	if shared == nil {
		return false
	}
	defer shared.Close()
	ended := make(chan struct{})
	go func() { // ends with shared, which is closed above
		defer close(ended)
		defer cancel()
		_ = shared.Wait()
	}()
	if p.awaitOther(ctx) != nil {
		_ = retry.Sleep(ctx, share.LookPause, nil) // it is about to listen, or to end
	}
	isLost := ctx.Err() != nil
	_ = shared.Close()
	<-ended
	return !isLost
}

// awaitOther returns when the process that is the bridge has ended, or ctx; an error says that
// it cannot be asked.
func (p *process) awaitOther(ctx context.Context) error {
	watch, err := p.dir.Watch(ctx, p.service.Target.ID)
	if err != nil {
		return err
	}
	defer watch.Close()
	for err == nil {
		_, err = watch.Next()
	}
	return nil
}

// untilEnds returns a context that ends with a process, too; 0 is none. The caller must call stop.
func untilEnds(ctx context.Context, pid int) (_ context.Context, stop func()) {
	if pid == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	process := proc.OpenProcess(pid)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		defer process.Close()
		process.Wait(ctx)
		cancel()
	})
	return ctx, func() {
		cancel()
		waiting.Wait()
	}
}
