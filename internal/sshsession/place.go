package sshsession

import (
	"sync"

	"gpg-bridge/internal/share"
)

// A waitingPlace holds the target's lock for a -N between two connections, so that others see
// that it waits, and can end it. It releases the lock to any process that asks, which may be
// able to reach the host; the -N takes part again when it has logged in. The nil *waitingPlace
// holds nothing.
type waitingPlace struct {
	run *run
	dir *share.Dir
	end func() // ends the -N

	holder *share.Holder // nil while it has no lock
	left   chan struct{} // closed by leave
	giving sync.WaitGroup
}

// enter takes the lock, unless another process has it.
func (p *waitingPlace) enter() {
	if p == nil || p.holder != nil {
		return
	}
	holder, err := p.run.service.Status.Hold(p.dir, p.run.service.Target.ID)
	if err != nil {
		return
	}
	left := make(chan struct{})
	p.holder, p.left = holder, left
	p.giving.Go(func() {
		select {
		case <-left:
		case <-holder.Stopped():
			if holder.Ending() == share.TakenDown {
				p.run.noteTakenDown()
				if !p.run.hasForwards() {
					p.end()
				}
			}
		}
		_ = holder.Close()
	})
}

// leave releases the lock, for other processes or for takePart.
func (p *waitingPlace) leave() {
	if p == nil || p.holder == nil {
		return
	}
	close(p.left)
	p.giving.Wait()
	p.holder = nil
}

func (p *waitingPlace) held() *share.Holder {
	if p == nil {
		return nil
	}
	return p.holder
}

// noteTakenDown notes that the user took the bridge down: this process does not bring it up
// again.
func (r *run) noteTakenDown() { r.takenDown.Store(true) }
