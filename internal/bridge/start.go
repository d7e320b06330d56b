package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gpg-bridge/remoteside"
	"gpg-bridge/sshfwd"
)

// Options say how a bridge is made.
type Options struct {
	// RemoteSocket is the path to forward; nothing is run on the host then,
	// neither to prepare it nor to tidy up. Empty: where the host's gpg looks.
	RemoteSocket string

	// Takeover replaces the live forward of somebody else.
	Takeover bool

	// Requested, where not nil, is called at most once, when the forward is
	// about to be asked for and nothing else is left to be done: a command
	// that is started now finds the socket there, since the server takes one
	// request after the other, unless it refuses. It must not block.
	Requested func()

	// Warn tells the user what went wrong without ending the bridge. It may
	// be called from any goroutine.
	Warn func(error)

	// LookFor is for how long the path is looked after when nobody uses it; 0:
	// for as long as the bridge lives. To look is to use the connection, which
	// may be one that is to end when it is not used.
	LookFor time.Duration

	// Stats, where not nil, count what goes over the bridge.
	Stats *Stats

	Log *slog.Logger

	timing timing // the zero value is defaultTiming
}

// A Bridge is one forwarded socket on one host with all its sessions. Close
// must be called; it waits for every goroutine of the bridge.
type Bridge struct {
	link    Link
	local   *Local
	options Options
	server  *remoteside.Server
	arrived atomic.Uint64 // connections that came through the forward

	requested func() // Options.Requested, but once

	stop     context.CancelFunc
	watched  chan struct{} // closed when watch has ended
	verified chan struct{} // closed when the first verification is over

	// Owned by watch, and by Close when watch has ended.
	proven bool // a verification has succeeded
	blind  bool // the server lets nobody look: the path is believed
	taken  bool // the last look found that the path is not ours

	mu      sync.Mutex
	path    string
	forward Forward
	lost    error // why the path is not ours, or could not be verified
	warned  bool  // the agent was reported unreachable
	retaken bool
}

// Start brings a bridge up and returns when gpg on the host can use it. The
// agent's state is found: with an Err the host's own agent is left alone, and
// gpg is told that no agent is running. ctx bounds the start, not the bridge.
func Start(ctx context.Context, link Link, local *Local, found Finding, options Options) (*Bridge, error) {
	if options.timing == (timing{}) {
		options.timing = defaultTiming()
	}
	b := &Bridge{
		link: link, local: local, options: options,
		watched:  make(chan struct{}),
		verified: make(chan struct{}),
		warned:   found.Err != nil, // by the caller
	}
	b.requested = sync.OnceFunc(func() {
		if options.Requested != nil {
			options.Requested()
		}
	})
	config := remoteside.Config{
		Connect: local.Connect, Log: options.Log, Ended: b.sessionEnded, MaxSessions: sessionLimit(),
	}
	if options.Stats != nil {
		config.Began, config.Operated = options.Stats.began, options.Stats.operated
	}
	b.server = remoteside.NewServer(config)
	if found.KeysErr != nil {
		options.Warn(found.KeysErr)
	}
	if err := b.open(ctx, found); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	go b.watch(running)
	return b, nil
}

func (b *Bridge) open(ctx context.Context, found Finding) error {
	if b.options.RemoteSocket != "" {
		b.requested()
		return b.listen(ctx, b.options.RemoteSocket)
	}
	options := b.prepareOptions(found)
	options.Takeover = b.options.Takeover
	return b.prepareAndListen(ctx, options)
}

// prepareAndListen prepares the host and forwards the socket. What came to be
// there in between, an agent that was started, is removed once more.
func (b *Bridge) prepareAndListen(ctx context.Context, options remoteside.PrepareOptions) error {
	for again := false; ; again = true {
		err := b.prepareAndListenOnce(ctx, options)
		var refused *sshfwd.ForwardRefusedError
		if !errors.As(err, &refused) || refused.Advice != "" {
			return err
		}
		why := remoteside.ExplainRefusal(ctx, b.link, refused.Path)
		if again || refusalOf(why) != remoteside.RefusedExists {
			return why
		}
	}
}

func (b *Bridge) prepareAndListenOnce(ctx context.Context, options remoteside.PrepareOptions) error {
	preparation, err := remoteside.Prepare(ctx, b.link, options)
	if err != nil {
		return err
	}
	if len(preparation.Missing) == 0 {
		b.requested()
	}
	err = b.listen(ctx, preparation.Socket)
	imported, importErr := preparation.Wait()
	if importErr != nil && ctx.Err() == nil {
		b.options.Warn(importErr)
	}
	b.options.Log.Debug("host prepared", "socket", preparation.Socket, "imported", imported)
	return err
}

func (b *Bridge) prepareOptions(found Finding) remoteside.PrepareOptions {
	options := remoteside.PrepareOptions{
		Evict:  found.Err == nil,
		Export: b.local.Keyring.ExportPublic,
	}
	for _, key := range found.Wanted {
		options.Wanted = append(options.Wanted, remoteside.Key{Fingerprint: key.Fingerprint, OwnerTrust: key.OwnerTrust})
	}
	return options
}

// listen asks for the forward, in the place of the one that there may be.
// Sessions belong to the Forward, which waits for them when it is closed.
func (b *Bridge) listen(ctx context.Context, path string) error {
	if _, old := b.current(); old != nil {
		if err := old.Close(ctx); err != nil {
			b.options.Log.Debug("cancel of the lost forward", "error", err)
		}
	}
	forward, err := b.link.Forward(ctx, path, func(ctx context.Context, conn io.ReadWriteCloser) {
		b.arrived.Add(1)
		b.server.ServeConn(ctx, conn)
	})
	if err != nil {
		return err
	}
	b.options.Log.Debug("forwarded", "socket", path)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.path, b.forward = path, forward
	return nil
}

// current returns the path that is forwarded, and its forward.
func (b *Bridge) current() (string, Forward) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.path, b.forward
}

// Path returns the socket's path on the host.
func (b *Bridge) Path() string {
	path, _ := b.current()
	return path
}

// sessionEnded counts, and warns, once for a bridge, that the agent cannot be
// reached.
func (b *Bridge) sessionEnded(r remoteside.Report) {
	if b.options.Stats != nil {
		b.options.Stats.ended(r)
	}
	b.mu.Lock()
	first := r.Unreachable != nil && !b.warned
	b.warned = b.warned || first
	b.mu.Unlock()
	if first {
		b.options.Warn(fmt.Errorf("no agent for a gpg on the host: %w", r.Unreachable))
	}
}
