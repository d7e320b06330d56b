// Command stress puts load on gpg-bridge through a real sshd, with a real
// gpg-agent behind it, and on OpenSSH's own forwarding beside it:
//
//   - crowd.go: many clients, and many gpgs that sign, at once, also with an
//     agent that has few descriptors
//   - endurance.go: many sessions, a few of them concurrently, with the bridge's
//     resources before, meanwhile and afterwards
//
// Usage: stress [-scale F] PATH-OF-gpg-bridge
//
// The scale multiplies the counts; 1 is the full load. The exit status is 1 if
// gpg-bridge did not keep its promises.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"gpg-bridge/internal/testkit/env"
)

// serveArg is the argument that makes this program the bridge of the endurance
// run, in a process of its own.
const serveArg = "serve"

func main() {
	if len(os.Args) == 3 && os.Args[1] == serveArg {
		exitOn(serve(context.Background(), os.Args[2], os.Stdin, os.Stdout))
		return
	}
	scale := flag.Float64("scale", 1, "how much of the full load")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: stress [-scale F] PATH-OF-gpg-bridge") }
	flag.Parse()
	if flag.NArg() != 1 || *scale <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	program, err := filepath.Abs(flag.Arg(0))
	exitOn(err)
	self, err := os.Executable()
	exitOn(err)
	if !run(fullLoad().scaled(*scale), program, []string{self, serveArg}) {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(1)
	}
}

// A load is how much of everything there is.
type load struct {
	clients  int
	gpgs     int
	stayers  int // clients that stay for a while
	sessions int // of the endurance run, commandsPerSession commands each
	workers  int // concurrent sessions
}

func fullLoad() load {
	return load{clients: 1000, gpgs: 100, stayers: 150, sessions: 100_000, workers: 16}
}

func (l load) scaled(by float64) load {
	times := func(n int) int { return max(1, int(float64(n)*by)) }
	return load{clients: times(l.clients), gpgs: times(l.gpgs), stayers: times(l.stayers), sessions: times(l.sessions), workers: l.workers}
}

// run prints the tables and reports whether all is well.
func run(l load, program string, serving []string) bool {
	p := env.NewProgram("stress")
	defer p.Close()
	ctx := context.Background()
	lab := newLab(ctx, p)
	crowds := crowdTable(ctx, lab, lab.forwarders(program), l)
	fmt.Printf("\n%d sessions of %d commands, %d at a time\n\n", l.sessions, commandsPerSession, l.workers)
	outcome, err := lab.endure(ctx, serving, l.sessions, l.workers)
	lab.must(err)
	outcome.print(os.Stdout)
	complaints := append(crowds, outcome.complaints()...)
	for _, complaint := range complaints {
		fmt.Println("FAILED:", complaint)
	}
	return len(complaints) == 0
}
