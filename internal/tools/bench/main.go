// Command bench runs gpg-bridge beside OpenSSH's own forwarding, on one machine
// in one run, against the same sshd, gpg and gpg-agent, and prints the times and
// their ratios. Absolute times belong to the machine; the ratios say something.
//
// Usage: bench [flags] PATH-OF-gpg-bridge [OTHER…]
//
// The others, such as an older gpg-bridge, are further columns of the table of
// throughput.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"gpg-bridge/internal/testkit/env"
)

func main() {
	table := flag.String("table", "", "print one `table` only: signatures, latency, throughput or proxy")
	only := flag.String("only", "", "in the table of throughput, take only the measures with this `text` in their name")
	rounds := flag.Int("rounds", 5, "how often throughput takes each measure")
	cipher := flag.String("cipher", "aes128-gcm@openssh.com", "the `cipher` of all columns of throughput, \"\" for what each negotiates")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: bench [flags] PATH-OF-gpg-bridge [OTHER…]")
		os.Exit(2)
	}
	var programs []string
	for _, arg := range flag.Args() {
		program, err := filepath.Abs(arg)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		programs = append(programs, program)
	}
	p := env.NewProgram("bench")
	defer p.Close()
	lab := newLab(p, programs[0])
	lab.only, lab.rounds, lab.cipher = *only, *rounds, *cipher
	for _, t := range []struct {
		name  string
		print func()
	}{
		{"signatures", func() { signatures(context.Background(), lab) }},
		{"latency", func() { latency(lab) }},
		{"throughput", func() { throughput(lab, programs) }},
		{"proxy", func() { proxy(lab) }},
	} {
		if *table == "" || *table == t.name {
			t.print()
		}
	}
}
