// Command bench runs gpg-bridge beside OpenSSH's own forwarding, on one machine
// in one run, against the same sshd, gpg and gpg-agent, and prints the times and
// their ratios. Absolute times belong to the machine; the ratios say something.
//
// Usage: bench PATH-OF-gpg-bridge
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gpg-bridge/internal/testenv"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bench PATH-OF-gpg-bridge")
		os.Exit(2)
	}
	program, err := filepath.Abs(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	p := testenv.NewProgram("bench")
	defer p.Close()
	lab := newLab(p, program)
	signatures(context.Background(), lab)
	latency(lab)
}
