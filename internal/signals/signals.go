package signals

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"gpg-bridge/internal/ui"
)

// Until returns a context that ends at the first SIGINT, SIGTERM, SIGHUP or SIGQUIT, with an
// *Error as its cause. A second signal ends the process by its default action: see DieOf. Signals that were ignored when the program started,
// as by nohup, stay ignored (client_loop in OpenSSH's clientloop.c does the same).
//
// A SIGINT or SIGQUIT ends nothing if cancelPrompt reports that it was for a prompt. SIGPIPE is
// caught, so that writing to a closed stdout is an error, and does not end a process that has a
// socket to remove.
func Until(parent context.Context, cancelPrompt func() bool) (context.Context, context.CancelFunc) {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(parent)
	w := &signalWatch{cancelPrompt: cancelPrompt, signals: make(chan os.Signal, 4), over: make(chan struct{})}
	w.notify(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	var watching sync.WaitGroup
	watching.Go(func() {
		if w.untilFirst(ctx, cancel) {
			w.untilQuit()
		}
	})
	return ctx, func() {
		close(w.over)
		watching.Wait()
		signal.Stop(w.signals)
		signal.Stop(pipe)
		cancel(nil)
	}
}

// An Error is the cause of a context that a signal has ended.
type Error struct{ Signal os.Signal }

func (e *Error) Error() string { return fmt.Sprintf("%v signal received", e.Signal) }

// A signalWatch belongs to the goroutine that waits for the signals.
type signalWatch struct {
	cancelPrompt func() bool
	signals      chan os.Signal
	over         chan struct{} // closed when the waiting is to end
}

// notify catches those of the signals that are not ignored.
func (w *signalWatch) notify(signals ...os.Signal) {
	signals = slices.DeleteFunc(signals, signal.Ignored)
	if len(signals) > 0 { // none would mean all
		signal.Notify(w.signals, signals...)
	}
}

// untilFirst ends the context at the first signal that is not for a prompt. It returns false if
// over is closed before.
func (w *signalWatch) untilFirst(ctx context.Context, cancel context.CancelCauseFunc) bool {
	for {
		select {
		case sig := <-w.signals:
			if isFromKey(sig) && w.cancelPrompt() {
				continue
			}
			cancel(&Error{sig})
			return true
		case <-ctx.Done():
			return true
		case <-w.over:
			return false
		}
	}
}

// isFromKey reports whether the signal is one that a terminal sends for a key.
func isFromKey(sig os.Signal) bool { return sig == os.Interrupt || sig == syscall.SIGQUIT }

// untilQuit restores the signals' default actions until over is closed. That of SIGQUIT is
// DieOf's.
func (w *signalWatch) untilQuit() {
	quit := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGQUIT) {
		signal.Notify(quit, syscall.SIGQUIT)
		defer signal.Stop(quit)
	}
	signal.Stop(w.signals)
	select {
	case sig := <-quit:
		DieOf(sig)
		os.Exit(ui.ExitConnection)
	case <-w.over:
	}
}
