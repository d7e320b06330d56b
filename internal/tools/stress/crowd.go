package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// crowdPatience is how long a client of a crowd waits for all of its answers.
// gpg itself would wait for ever.
const crowdPatience = 60 * time.Second

// stay is longer than the bridge waits for the agent's greeting.
const stay = 8 * time.Second

// An ordeal is one row of the table.
type ordeal struct {
	name        string
	descriptors int // the agent's limit, 0 for the usual one
	count       int
	crowd       func(context.Context, int) tally
	lasts       bool // it takes half a minute, most of it waiting
}

// ordeals returns the rows. An agent with 64 descriptors can have 53 conversations, far fewer
// than the bridge expects of any agent.
func (l *lab) ordeals(n load) []ordeal {
	return []ordeal{
		{"%d clients at once", 0, n.clients, l.visitors, false},
		{"%d gpg signing at once", 0, n.gpgs, l.signers, false},
		{"%d clients, agent with 256 descriptors", 256, n.clients, l.visitors, false},
		{"%d gpg, agent with 256 descriptors", 256, n.gpgs, l.signers, false},
		{"%d clients, agent with 64 descriptors", 64, n.clients, l.visitors, false},
		{"%d that stay " + stay.String() + ", agent with 64", 64, n.stayers, l.stayers, true},
	}
}

// A tally counts what became of a crowd.
type tally struct {
	of, ok int
	took   time.Duration
	agent  time.Duration  // the CPU time that the agent used
	errs   map[string]int // how often each error occurred
}

func (t tally) String() string {
	return fmt.Sprintf("%4d of %-4d %5.1f s %5.1f s", t.ok, t.of, t.took.Seconds(), t.agent.Seconds())
}

// reasons returns the errors, the most frequent first.
func (t tally) reasons() []string {
	texts := slices.SortedFunc(maps.Keys(t.errs), func(a, b string) int { return t.errs[b] - t.errs[a] })
	for i, text := range texts {
		texts[i] = fmt.Sprintf("%d × %s", t.errs[text], text)
	}
	return texts[:min(3, len(texts))]
}

// crowdTable prints the table, and returns the promises that gpg-bridge did not keep.
func crowdTable(ctx context.Context, l *lab, forwarders []forwarder, n load) (complaints []string) {
	fmt.Printf("%-44s", "answered, time, processor time of the agent")
	for _, f := range forwarders {
		fmt.Printf(" %-26s", f.name)
	}
	fmt.Println()
	for _, o := range l.ordeals(n) {
		name := fmt.Sprintf(o.name, o.count)
		fmt.Printf("%-44s", name)
		var lost []string
		for _, f := range forwarders {
			t := l.undergo(ctx, f, o)
			fmt.Printf(" %-26s", t)
			if t.ok < t.of {
				lost = append(lost, f.name+": "+strings.Join(t.reasons(), "; "))
			}
			if f.ours && t.ok < t.of {
				complaints = append(complaints, name+": "+t.String())
			}
		}
		fmt.Println()
		for _, reasons := range lost {
			fmt.Println("    " + reasons)
		}
	}
	return complaints
}

// undergo runs an ordeal with a forwarder, and a fresh agent.
func (l *lab) undergo(ctx context.Context, f forwarder, o ordeal) (t tally) {
	l.t.Helper()
	if o.descriptors > 0 {
		l.limitAgent(ctx, o.descriptors)
	} else {
		l.freshAgent(ctx)
	}
	l.with(f, func() {
		before, err := l.laptop.AgentCPU()
		l.must(err)
		t = o.crowd(ctx, o.count)
		after, err := l.laptop.AgentCPU()
		l.must(err)
		t.agent = after - before
	})
	return t
}

// together calls each n times concurrently, and counts the results.
func together(n int, each func(i int) error) tally {
	errs := make([]error, n)
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-begin
			errs[i] = each(i)
		})
	}
	start := time.Now()
	close(begin)
	all.Wait()
	t := tally{of: n, took: time.Since(start), errs: map[string]int{}}
	for _, err := range errs {
		if err == nil {
			t.ok++
		} else {
			t.errs[said(err)]++
		}
	}
	return t
}

// said returns an error's text in one line, without what differs between two clients.
func said(err error) string {
	if late, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && late.Timeout() {
		return "no answer within " + crowdPatience.String()
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if i := strings.LastIndex(text, "gpg: "); i >= 0 {
		text = text[i:]
	}
	return text
}

func (l *lab) visitors(_ context.Context, n int) tally {
	return together(n, func(int) error { return l.visit(crowdPatience, 0) })
}

func (l *lab) stayers(_ context.Context, n int) tally {
	return together(n, func(int) error { return l.visit(crowdPatience, stay) })
}

// signers counts the signatures that the laptop finds valid.
func (l *lab) signers(ctx context.Context, n int) tally {
	dir, err := os.MkdirTemp("", "stress")
	l.must(err)
	defer os.RemoveAll(dir)
	signature := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%d.sig", i)) }
	t := together(n, func(i int) error {
		ctx, cancel := context.WithTimeout(ctx, crowdPatience)
		defer cancel()
		return l.sign(ctx, message(i), signature(i))
	})
	t.ok = 0
	for i := range n {
		if l.verify(ctx, message(i), signature(i)) {
			t.ok++
		}
	}
	return t
}

func message(i int) string { return fmt.Sprintf("message %d\n", i) }

// sign makes one signature with the host's gpg.
func (l *lab) sign(ctx context.Context, text, file string) error {
	_, _, err := l.host.Gpg(ctx, strings.NewReader(text), "--no-autostart", "-u", l.key.Fingerprint, "--detach-sign", "-o", file)
	return err
}

func (l *lab) verify(ctx context.Context, text, file string) bool {
	status, _, err := l.laptop.Gpg(ctx, strings.NewReader(text), "--status-fd", "1", "--verify", file, "-")
	return err == nil && strings.Contains(string(status), "[GNUPG:] VALIDSIG "+l.key.Fingerprint)
}
