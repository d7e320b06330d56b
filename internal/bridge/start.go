package bridge

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/retry"
	"gpg-bridge/remoteside"
	"gpg-bridge/remoteside/prepare"
)

// Options say how a bridge is made.
type Options struct {
	// RemoteSocket is the path to forward; "" for where the host's gpg looks. If it is
	// set, nothing is run on the host, neither to prepare it nor to tidy up.
	RemoteSocket string

	// Takeover replaces the live forward of somebody else.
	Takeover bool

	// Requested, where not nil, is called at most once, just before the forward is
	// requested, when nothing else is left to do. The server handles requests in order, so
	// a command that is started now finds the socket there, unless the forward is refused.
	// It must not block.
	Requested func()

	// Begun and MOTD are those of prepare.Options, for the first preparation.
	Begun func()
	MOTD  func(lines []string)

	// Login, where not nil, has a second path served if the gpg of a login shell looks
	// elsewhere. It is used only without RemoteSocket.
	Login *LoginShell

	// Warn tells the user what went wrong without ending the bridge. It may
	// be called from any goroutine.
	Warn func(error)

	// LookFor is for how long the path is verified while nobody uses it; 0 for as long as
	// the bridge lives. A look is a use of the connection, which may be one that is to end
	// when it is not used.
	LookFor time.Duration

	// Changed, where not nil, is called when Health has changed, and when a look
	// has found the same hindrance again. It may be called from any goroutine, and
	// must not block.
	Changed func()

	// Stats, where not nil, counts the bridge's sessions and operations.
	Stats *Stats

	Log *slog.Logger

	home    string            // prepare.Options.Home
	prompts *abandonedPrompts // the first bridge's, for the second one of a login; else nil
	timing  timing            // the zero value is defaultTiming
}

// A Bridge is one forwarded socket on one host with all its sessions. Close
// must be called; it waits for every goroutine of the bridge.
type Bridge struct {
	link    link.Link
	local   *Local
	options Options
	server  *remoteside.Server
	prompts *abandonedPrompts
	arrived atomic.Uint64 // connections that came through the forward
	used    atomic.Uint64 // those whose client used the agent

	requested func() // Options.Requested, at most once
	login     *login // nil without Options.Login

	stop     context.CancelFunc
	imports  *imports
	watched  chan struct{} // closed when watchBoth has ended
	verified chan struct{} // closed when the first verification is over

	lookNow, askAgentNow chan struct{} // hold one signal each; see Look

	// Owned by watch, and by Close when watch has ended.
	proven  bool // a verification has succeeded
	blind   bool // the server does not let us look: the path is taken to be ours
	taken   bool // the last look found that the path is not ours
	retakes retakes

	doubted bool // something is at the path, but opening it has never succeeded

	mu        sync.Mutex
	path      string
	forward   link.Forward
	lost      error // why the path is not ours, or could not be verified
	lossLasts bool  // the path is not ours
	agent     error // why the local agent cannot be used
	warned    bool  // the agent was reported unreachable
}

// Start brings up a bridge over a link, and returns when gpg on the host can use it. found is
// the result of [Local.Check]: with an Err the host's own agent is left alone, and gpg is told
// that no agent is running. ctx bounds the start, not the bridge.
func Start(ctx context.Context, over link.Link, local *Local, found Finding, options Options) (*Bridge, error) {
	if options.timing == (timing{}) {
		options.timing = defaultTiming()
	}
	b := &Bridge{
		link: over, local: local, options: options,
		watched:  make(chan struct{}),
		verified: make(chan struct{}),
		imports:  newImports(ctx),
		lookNow:  make(chan struct{}, 1), askAgentNow: make(chan struct{}, 1),
		retakes: retakes{
			pause:     retry.Backoff{Min: options.timing.pause, Max: mostPause, Steady: options.timing.calm},
			heldPause: retry.Backoff{Min: options.timing.pause, Max: mostHeldPause},
		},
		agent:  found.Err,
		warned: found.Err != nil, // the caller does
	}
	b.requested = sync.OnceFunc(func() {
		if options.Requested != nil {
			options.Requested()
		}
	})
	if found.KeysErr != nil {
		options.Warn(found.KeysErr)
	}
	b.prompts = options.prompts
	if b.prompts == nil {
		b.prompts = followAbandoned(ctx, local, options)
	}
	b.server = remoteside.NewServer(remoteside.Config{
		Connect:     remoteside.Lazy(b.connectAgent, !local.Agent.AllowUnrestricted),
		Log:         options.Log,
		MaxSessions: sessionLimit(),
		Observers:   b.observers(),
		Asking:      b.prompts.asking,
	})
	if err := b.open(ctx, found); err != nil {
		b.settlePrompts(ctx)
		b.imports.end()
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	go b.watchBoth(running)
	if options.Login != nil && options.RemoteSocket == "" {
		b.startLogin(running, found)
	}
	return b, nil
}

func (b *Bridge) open(ctx context.Context, found Finding) error {
	if b.options.RemoteSocket != "" {
		b.requested()
		return b.listen(ctx, b.options.RemoteSocket)
	}
	options := b.prepareOptions(found)
	options.Takeover, options.Begun, options.MOTD = b.options.Takeover, b.options.Begun, b.options.MOTD
	return b.prepareAndListen(ctx, options)
}

// prepareAndListen prepares the host and forwards the socket. If an agent was started at the
// path in between, it does both once more.
func (b *Bridge) prepareAndListen(ctx context.Context, options prepare.Options) error {
	for again := false; ; again = true {
		err := b.prepareAndListenOnce(ctx, options)
		var refused *link.RefusedError
		if !errors.As(err, &refused) || refused.Advice != "" {
			return err
		}
		options.Begun, options.MOTD = nil, nil // they were called
		why := prepare.ExplainRefusal(ctx, b.link, refused.Path)
		if again || refusalOf(why) != prepare.RefusedExists {
			return why
		}
	}
}

func (b *Bridge) prepareAndListenOnce(ctx context.Context, options prepare.Options) error {
	running := b.imports.begin(ctx)
	defer running.detach()
	preparation, err := b.prepare(running, options)
	if err != nil {
		running.cancel(nil)
		return err
	}
	b.imports.waiting.Go(func() {
		if preparation.HasAll(running) {
			b.requested()
		}
	})
	err = b.listen(ctx, preparation.Socket)
	b.awaitImport(running, preparation)
	return err
}

// prepare prepares the host. Meanwhile a token file lies next to the local agent's socket, by
// which the script recognises that the host has the same directory. The file is removed when
// the path is free, before anything is bound to it.
func (b *Bridge) prepare(ctx context.Context, options prepare.Options) (*prepare.Preparation, error) {
	token, remove, err := b.local.Agent.PutToken()
	if err != nil {
		b.options.Log.Debug("no token next to the agent's socket", "error", err)
		return prepare.Prepare(ctx, b.link, options)
	}
	defer remove()
	options.Token = token
	return prepare.Prepare(ctx, b.link, options)
}

func (b *Bridge) prepareOptions(found Finding) prepare.Options {
	options := prepare.Options{
		Evict:  found.Err == nil,
		Home:   b.options.home,
		Export: b.local.Keyring.ExportPublic,
	}
	for _, key := range found.Wanted {
		options.Wanted = append(options.Wanted, prepare.Key(key))
	}
	return options
}

// listen requests the forward, and replaces an earlier one. Sessions belong to the Forward,
// which waits for them when it is closed.
func (b *Bridge) listen(ctx context.Context, path string) error {
	if _, old := b.current(); old != nil {
		closing, cancel := context.WithTimeout(ctx, b.options.timing.patience)
		if err := old.Close(closing); err != nil {
			b.options.Log.Debug("cancel of the lost forward", "error", err)
		}
		cancel()
	}
	forward, err := b.link.Forward(ctx, path, func(ctx context.Context, conn link.Conn) {
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

// current returns the forwarded path, and its forward.
func (b *Bridge) current() (string, link.Forward) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.path, b.forward
}

// Path returns the socket's path on the host.
func (b *Bridge) Path() string {
	path, _ := b.current()
	return path
}

// observers returns those who are told what the clients of this bridge do.
func (b *Bridge) observers() []remoteside.Observer {
	observers := []remoteside.Observer{b.prompts, sessionObserver{b: b}}
	if b.options.Stats != nil {
		observers = append(observers, b.options.Stats)
	}
	return observers
}

// A sessionObserver tells a bridge of its sessions.
type sessionObserver struct {
	remoteside.NopObserver
	b *Bridge
}

// Began counts the clients that use the agent.
func (o sessionObserver) Began(uuid.UUID) { o.b.used.Add(1) }

// Ended warns, once for each bridge, when the agent cannot be reached.
func (o sessionObserver) Ended(r remoteside.Report) { o.b.sessionEnded(r) }
