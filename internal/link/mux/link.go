package mux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/private"
	"gpg-bridge/internal/proc"
)

// tidyTimeout is how long the master has to cancel what nobody needs any more.
const tidyTimeout = time.Second

// Options say whose connection is used, and for whom.
type Options struct {
	// ControlPath is ssh_config's, with its tokens replaced.
	ControlPath string

	// Dir is where the sockets go that the master connects to and listens on, and
	// Name is their name there. At most one Link at a time uses the name, and the
	// next cancels what an earlier one left in the master.
	Dir  *private.Dir
	Name string
}

var _ link.Link = (*Link)(nil)

// A Link is the connection of a master, for one bridge. Its methods may be
// called from any goroutine. Close must be called.
type Link struct {
	options Options
	pid     int // the master's
	watched sync.WaitGroup
	stop    context.CancelFunc // of the watch
	ended   chan struct{}      // closed when the master has ended, or after Close

	mu      sync.Mutex
	closed  bool
	cause   error // why the link ended before Close
	forward *Forward

	localMu sync.Mutex // guards local, and is held while the master is asked
	local   localForward
}

// Open returns the master's connection. The error is ErrNoMaster if there is no master, and
// another one if there is something that must not be used.
func Open(ctx context.Context, options Options) (*Link, error) {
	if runtime.GOOS == "windows" || !filepath.IsAbs(options.ControlPath) {
		return nil, ErrNoMaster
	}
	c, err := dialControl(ctx, options.ControlPath)
	if err != nil {
		return nil, err
	}
	defer c.close()
	pid, err := c.alive(ctx)
	if err != nil {
		return nil, err
	}
	master := proc.OpenProcess(pid)
	// The master answers, so the process that was opened by its number is still the master.
	if _, err := c.alive(ctx); err != nil {
		master.Close()
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Link{options: options, pid: pid, stop: stop, ended: make(chan struct{})}
	l.watched.Go(func() {
		defer master.Close()
		if master.Wait(watching) {
			l.end(lost(nil))
		}
	})
	return l, nil
}

// SharedBy is the master's process ID.
func (l *Link) SharedBy() int { return l.pid }

// Wait returns when the link has ended: nil after Close, else the cause, which is
// a *link.LostError.
func (l *Link) Wait() error {
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Ended is closed when the link has ended.
func (l *Link) Ended() <-chan struct{} { return l.ended }

// CheckAlive asks the master whether it is alive. Without an answer until ctx ends, the link
// ends.
func (l *Link) CheckAlive(ctx context.Context) {
	c, err := l.control(ctx)
	if err != nil {
		l.end(lost(err))
		return
	}
	c.close()
}

// Close cancels what the link has opened in the master, which stays, and returns when its
// goroutines have ended.
func (l *Link) Close() error {
	l.mu.Lock()
	first, forward := !l.closed, l.forward
	l.closed = true
	l.mu.Unlock()
	if first {
		ctx, cancel := context.WithTimeout(context.Background(), tidyTimeout)
		defer cancel()
		if forward != nil {
			_ = forward.Close(ctx)
		}
		l.closeLocal(ctx)
		l.end(nil)
	}
	l.stop()
	l.watched.Wait()
	return nil
}

// end notes that the link has ended; the first cause counts.
func (l *Link) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
	default:
		l.cause = cause
		close(l.ended)
	}
}

func (l *Link) isOver() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// control connects to the master, and makes sure that it is still the same.
func (l *Link) control(ctx context.Context) (*control, error) {
	if l.isOver() {
		if cause := l.Wait(); cause != nil {
			return nil, cause
		}
		return nil, net.ErrClosed
	}
	c, err := dialControl(ctx, l.options.ControlPath)
	if err != nil {
		return nil, l.lost(err)
	}
	pid, err := c.alive(ctx)
	if err == nil && pid != l.pid {
		err = l.lost(errReplaced)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// lost ends the link if the master is no longer there.
func (l *Link) lost(err error) error {
	if !errors.Is(err, ErrNoMaster) && !errors.Is(err, errReplaced) {
		return err
	}
	cause := lost(err)
	l.end(cause)
	return cause
}

// socket returns the path of a socket of this link, after removing what is there.
func (l *Link) socket(kind string) (string, error) {
	name := l.options.Name + kind
	path, err := l.options.Dir.SocketPath(name)
	if err != nil {
		return "", err
	}
	if err := l.options.Dir.Remove(name); err != nil {
		return "", fmt.Errorf("socket for the master: %w", err)
	}
	return path, nil
}
