package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	commandsPerSession = 10

	// samples is how many samples of the run are taken; ten of them are a tenth.
	samples = 100

	// mostGrowth is how much larger the last tenth's mean may be than the second's.
	mostGrowth = 1.05

	// heapSlack, in MB, is what tables of the runtime may add to a small heap.
	// A session is 10 KB and more.
	heapSlack = 0.25

	// longRun is how many sessions it takes before the resident set can be judged, which
	// the collector lets grow to twice the heap.
	longRun = 10_000
)

// An outcome is what an endurance run showed.
type outcome struct {
	sessions     int
	before       holding
	after        holding
	heap1, heap2 float64   // after a first tenth of the sessions, and after all
	rss          []float64 // MB, a sample for each hundredth of the sessions
	took         time.Duration
}

// endure runs a bridge in a process of its own, with the command line serving, and has workers
// run sessions with it.
func (l *lab) endure(ctx context.Context, serving []string, sessions, workers int) (o outcome, err error) {
	l.freshAgent(ctx)
	s, err := l.startServing(ctx, serving)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	// The first sessions allocate memory that is kept, such as stacks and buffers.
	if err := l.work(max(workers, sessions/samples), workers, func() error { return nil }); err != nil {
		return o, err
	}
	if o.before, err = s.settled(holding{}); err != nil {
		return o, err
	}
	o.sessions = sessions
	start := time.Now()
	if err = l.workAndSample(s, &o, workers); err != nil {
		return o, err
	}
	o.took = time.Since(start)
	o.after, err = s.settled(o.before)
	o.heap2 = o.after.Heap
	return o, err
}

// workAndSample collects the heap once, after the first tenth, and samples the
// resident set throughout.
func (l *lab) workAndSample(s *serving, o *outcome, workers int) error {
	sample := func() error {
		h, err := s.ask(askHolding)
		o.rss = append(o.rss, h.RSS)
		return err
	}
	if err := l.work(o.sessions/10, workers, sampled(o.sessions, sample)); err != nil {
		return err
	}
	h, err := s.settled(o.before)
	if err != nil {
		return err
	}
	o.heap1 = h.Heap
	return l.work(o.sessions-o.sessions/10, workers, sampled(o.sessions, sample))
}

// sampled returns a function to be called after each session, from any goroutine.
func sampled(sessions int, sample func() error) func() error {
	var mu sync.Mutex
	n, every := 0, max(1, sessions/samples)
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%every != 0 {
			return nil
		}
		return sample()
	}
}

// work runs n sessions with so many workers, and stops at the first that fails.
func (l *lab) work(n, workers int, done func() error) error {
	var next atomic.Int64
	errs := make([]error, workers)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n) && errs[worker] == nil; i = next.Add(1) {
				if errs[worker] = errors.Join(l.session(int(i)), done()); errs[worker] != nil {
					next.Store(int64(n)) // the others stop, too
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// session runs one session of commandsPerSession commands. Every second session ends as gpg
// does, without a BYE.
func (l *lab) session(nth int) error {
	c, err := dial(l.socket, crowdPatience)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	ok := "OK\n"
	for _, turn := range [commandsPerSession - 1][]string{
		{"RESET", ok},
		{"OPTION agent-awareness=2.1.0", ok},
		{"GETINFO version", "D " + l.version + "\n", ok},
		{"GETINFO restricted", ok},
		{"GETINFO pid", "ERR 67109115 "},
		{"HAVEKEY " + l.key.Keygrip, ok},
		{"SIGKEY " + l.key.Keygrip, ok},
		{"SETKEYDESC Stress+test", ok},
		{"HAVEKEY 0000000000000000000000000000000000000000", "ERR 67108881 "},
	} {
		if err := c.ask(turn[0], turn[1:]...); err != nil {
			return fmt.Errorf("session %d: %w", nth, err)
		}
	}
	if nth%2 == 0 {
		return c.bye()
	}
	return c.ask("NOP", ok)
}

// tenth returns the mean of the samples in one tenth of the run, from 0 to 9.
func (o outcome) tenth(nth int) float64 {
	part := o.rss[len(o.rss)*nth/10 : len(o.rss)*(nth+1)/10]
	sum := 0.0
	for _, mb := range part {
		sum += mb
	}
	return sum / float64(max(1, len(part)))
}

// complaints returns what the run should not have shown.
func (o outcome) complaints() (complaints []string) {
	complain := func(bad bool, format string, args ...any) {
		if bad {
			complaints = append(complaints, fmt.Sprintf(format, args...))
		}
	}
	complain(o.after.Sessions > 0, "%d sessions are left", o.after.Sessions)
	complain(o.after.Conversations > 0, "%d conversations with the agent are left", o.after.Conversations)
	complain(o.after.Descriptors > o.before.Descriptors, "descriptors: %d, then %d", o.before.Descriptors, o.after.Descriptors)
	complain(o.after.Goroutines > o.before.Goroutines, "goroutines: %d, then %d", o.before.Goroutines, o.after.Goroutines)
	complain(o.heap2 > o.heap1*mostGrowth+heapSlack, "heap in use: %.2f MB, then %.2f MB", o.heap1, o.heap2)
	complain(o.sessions >= longRun && o.tenth(9) > o.tenth(1)*mostGrowth, "resident set: %.1f MB, then %.1f MB", o.tenth(1), o.tenth(9))
	return complaints
}

func (o outcome) print(w io.Writer) {
	row := func(what string, before, after any) { fmt.Fprintf(w, "%-44s %12v %12v\n", what, before, after) }
	mb := func(n float64) string { return fmt.Sprintf("%.1f MB", n) }
	row("", "before", "after")
	row("sessions", o.before.Sessions, o.after.Sessions)
	row("conversations with the agent", o.before.Conversations, o.after.Conversations)
	row("descriptors", o.before.Descriptors, o.after.Descriptors)
	row("goroutines", o.before.Goroutines, o.after.Goroutines)
	row("resident set, second and last tenth", mb(o.tenth(1)), mb(o.tenth(9)))
	row("heap in use, after a tenth and all", mb(o.heap1), mb(o.heap2))
	fmt.Fprintf(w, "%.0f sessions and %.0f commands a second, %.0f s\n",
		float64(o.sessions)/o.took.Seconds(), float64(o.sessions*commandsPerSession)/o.took.Seconds(), o.took.Seconds())
}
