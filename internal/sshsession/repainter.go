package sshsession

import (
	"sync"
	"time"

	"gpg-bridge/internal/terminal"
)

// paintPause is how long the window has another size. When programs are told of a change they
// ask for the size, and paint only if it is a new one.
const paintPause = 100 * time.Millisecond

// A repainter passes on the sizes of the user's terminal, and can have the host paint the
// screen anew, by making the window one line shorter for a moment.
type repainter struct {
	terminal *terminal.Terminal
	sizes    chan terminal.WindowSize
	asked    chan struct{} // holds one signal
	done     chan struct{}
	work     sync.WaitGroup
}

func newRepainter(tty *terminal.Terminal, sizes <-chan terminal.WindowSize) *repainter {
	p := &repainter{
		terminal: tty, sizes: make(chan terminal.WindowSize),
		asked: make(chan struct{}, 1), done: make(chan struct{}),
	}
	p.work.Go(func() { p.run(sizes) })
	return p
}

func (p *repainter) stop() {
	close(p.done)
	p.work.Wait()
}

// repaint asks for a repaint, and does not wait.
func (p *repainter) repaint() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

func (p *repainter) run(sizes <-chan terminal.WindowSize) {
	for {
		select {
		case size := <-sizes:
			p.send(size)
		case <-p.asked:
			p.paint()
		case <-p.done:
			return
		}
	}
}

func (p *repainter) paint() {
	size, err := p.terminal.Size()
	if err != nil {
		return
	}
	other := size
	if other.Rows--; size.Rows < 2 {
		other.Rows = size.Rows + 1
	}
	p.send(other)
	select {
	case <-time.After(paintPause):
	case <-p.done:
		return
	}
	if now, err := p.terminal.Size(); err == nil {
		size = now
	}
	p.send(size)
}

func (p *repainter) send(size terminal.WindowSize) {
	select {
	case p.sizes <- size:
	case <-p.done:
	}
}

// A lentTerminal is the session's terminal while a pinentry has it.
type lentTerminal struct {
	raw     *rawMode
	painter *repainter
}

// Lent changes the modes so that the pinentry gets the Enter it waits for.
func (t lentTerminal) Lent(byLine bool) {
	if byLine {
		t.raw.lend()
	}
}

// Returned sets the session's modes again, whatever the pinentry left, and repaints.
func (t lentTerminal) Returned() {
	t.raw.renew()
	t.painter.repaint()
}
