package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"gpg-bridge/agentside"
	"gpg-bridge/remoteside"
	"gpg-bridge/sshfwd"
)

// maxSessions is how many sessions one bridge serves at once, and so the most
// connections to the agent that it has; the agent's own descriptors, 1024 by
// default, then suffice for a few bridges.
const maxSessions = 256

// A Link is what a bridge needs of the SSH connection.
type Link interface {
	remoteside.Host
	Forward(ctx context.Context, path string, serve func(context.Context, sshfwd.Conn)) (*sshfwd.Forward, error)
	DialUnix(ctx context.Context, path string) (sshfwd.Conn, error)
}

// Options say how a bridge is made.
type Options struct {
	// RemoteSocket is the path to forward; nothing is run on the host then,
	// neither to prepare it nor to tidy up. Empty: where the host's gpg looks.
	RemoteSocket string

	// Takeover replaces the live forward of somebody else.
	Takeover bool

	// Warn tells the user what went wrong without ending the bridge. It may
	// be called from any goroutine.
	Warn func(error)

	Log *slog.Logger
}

// A Bridge is one forwarded socket on one host with all its sessions. Close
// must be called; it waits for every goroutine of the bridge.
type Bridge struct {
	link    Link
	local   *Local
	options Options
	server  *remoteside.Server

	path string

	stop     context.CancelFunc
	watching sync.WaitGroup
	verified chan struct{} // closed when the first verification is over

	mu      sync.Mutex
	forward *sshfwd.Forward
	lost    error // why the path is not ours, or could not be verified
	warned  bool  // the agent was reported unreachable
	retaken bool
}

// Start brings a bridge up and returns when gpg on the host can use it. The
// agent's state is found: with an Err the host's own agent is left alone, and
// gpg is told that no agent is running. ctx bounds the start, not the bridge.
func Start(ctx context.Context, link Link, local *Local, found Finding, options Options) (*Bridge, error) {
	b := &Bridge{
		link: link, local: local, options: options,
		verified: make(chan struct{}),
		warned:   found.Err != nil, // by the caller
	}
	b.server = remoteside.NewServer(remoteside.Config{
		Connect: local.Connect, Log: options.Log, Ended: b.sessionEnded, MaxSessions: sessionLimit(),
	})
	if found.KeysErr != nil {
		options.Warn(found.KeysErr)
	}
	if err := b.open(ctx, found); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	b.watching.Go(func() { b.watch(running) })
	return b, nil
}

// open prepares the host and forwards the socket. What stood in the way when
// the forward was asked for, an agent that was started in between, is removed
// once more.
func (b *Bridge) open(ctx context.Context, found Finding) error {
	if b.options.RemoteSocket != "" {
		b.path = b.options.RemoteSocket
		return b.listen(ctx)
	}
	err := b.prepareAndListen(ctx, found)
	var refused *sshfwd.ForwardRefusedError
	if errors.As(err, &refused) {
		err = b.prepareAndListen(ctx, found)
	}
	if errors.As(err, &refused) {
		return remoteside.ExplainRefusal(ctx, b.link, b.path)
	}
	return err
}

func (b *Bridge) prepareAndListen(ctx context.Context, found Finding) error {
	preparation, err := remoteside.Prepare(ctx, b.link, b.prepareOptions(found))
	if err != nil {
		return err
	}
	b.path = preparation.Socket
	err = b.listen(ctx)
	imported, importErr := preparation.Wait()
	if importErr != nil {
		b.options.Warn(importErr)
	}
	b.options.Log.Debug("host prepared", "socket", b.path, "imported", imported)
	return err
}

func (b *Bridge) prepareOptions(found Finding) remoteside.PrepareOptions {
	options := remoteside.PrepareOptions{
		Takeover: b.options.Takeover,
		Evict:    found.Err == nil,
		Export:   agentside.ExportPublic,
	}
	for _, key := range found.Wanted {
		options.Wanted = append(options.Wanted, remoteside.Key{Fingerprint: key.Fingerprint, OwnerTrust: key.OwnerTrust})
	}
	return options
}

// listen asks for the forward. Sessions belong to the Forward, which waits for
// them when it is closed.
func (b *Bridge) listen(ctx context.Context) error {
	forward, err := b.link.Forward(ctx, b.path, func(ctx context.Context, conn sshfwd.Conn) {
		b.server.ServeConn(ctx, conn)
	})
	if err != nil {
		return err
	}
	b.options.Log.Debug("forwarded", "socket", b.path)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forward = forward
	return nil
}

// Path returns the socket's path on the host.
func (b *Bridge) Path() string { return b.path }

// sessionEnded warns, once for a bridge, that the agent cannot be reached.
func (b *Bridge) sessionEnded(r remoteside.Report) {
	b.mu.Lock()
	first := r.Unreachable != nil && !b.warned
	b.warned = b.warned || first
	b.mu.Unlock()
	if first {
		b.options.Warn(fmt.Errorf("no agent for a gpg on the host: %w", r.Unreachable))
	}
}
