package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"

	"gpg-bridge/internal/share"
)

// A watcher follows all bridges, those that come later among them. Its methods
// are its owner's; it has one goroutine for each bridge.
type watcher struct {
	ctx    context.Context
	cancel context.CancelFunc
	dir    *share.Dir
	news   chan share.Status
	known  map[string]share.Status // by ID
	last   *share.Status           // what was said last, until it was shown
	wg     sync.WaitGroup

	mu       sync.Mutex
	followed map[string]bool // by ID
}

// newWatcher knows at once what there is.
func newWatcher(ctx context.Context, dir *share.Dir) (*watcher, error) {
	known := map[string]share.Status{}
	all, err := statuses(ctx, dir)
	for _, status := range all {
		known[status.ID] = status
	}
	if silent := new(silentError); err != nil && !errors.As(err, &silent) {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return &watcher{
		ctx: ctx, cancel: cancel, dir: dir, news: make(chan share.Status),
		known: known, followed: map[string]bool{},
	}, nil
}

func (w *watcher) stop() {
	w.cancel()
	w.wg.Wait()
}

// look follows the bridges that are not followed yet.
func (w *watcher) look() error {
	ids, err := w.dir.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !w.begin(id) {
			continue
		}
		lease, err := w.dir.Watch(w.ctx, id)
		if err != nil {
			w.end(id)
			delete(w.known, id)
			continue
		}
		w.wg.Go(func() {
			defer w.end(id)
			w.follow(lease)
		})
	}
	return nil
}

func (w *watcher) begin(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun := !w.followed[id]
	w.followed[id] = true
	return begun
}

func (w *watcher) end(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.followed, id)
}

// follow passes on what a bridge says, and at its end that it has gone.
func (w *watcher) follow(lease *share.Lease) {
	defer lease.Close()
	var last share.Status
	for {
		status, err := lease.Next()
		if err != nil {
			break
		}
		last = status
		w.tell(status)
	}
	if last.ID != "" {
		last.State, last.Since = share.Gone, time.Now()
		w.tell(last)
	}
}

func (w *watcher) tell(status share.Status) {
	select {
	case w.news <- status:
	case <-w.ctx.Done():
	}
}

// note takes news into account.
func (w *watcher) note(status share.Status) {
	w.last = &status
	if status.State == share.Gone {
		delete(w.known, status.ID)
		return
	}
	w.known[status.ID] = status
}

// all returns the bridges as they were said to be last.
func (w *watcher) all() []share.Status {
	var all []share.Status
	for _, status := range w.known {
		all = append(all, status)
	}
	slices.SortFunc(all, compareStatuses)
	return all
}

// clearScreen moves to the top of a terminal and clears it (ECMA-48: CUP, ED).
const clearScreen = "\x1b[H\x1b[2J"

// A display is a text that changes: in its place on a terminal, elsewhere one
// after the other.
type display struct {
	ui       *ui
	terminal bool
	shown    string
}

func newDisplay(ui *ui) *display {
	file, ok := ui.stdout.(*os.File)
	return &display{ui: ui, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// show shows the text. Where there is news only in how old things are, it is
// shown on a terminal only.
func (d *display) show(text string, news bool) error {
	if text == d.shown || !news && !d.terminal && d.shown != "" {
		return nil
	}
	switch {
	case d.terminal:
		d.ui.control(clearScreen)
	case d.shown != "":
		text = "\n" + text
	}
	d.shown = text
	return d.ui.print(text)
}
