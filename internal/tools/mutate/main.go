// Command mutate changes the code of the packages that users rely on most, one
// small change at a time, and sees whether a test fails: a change that no test
// notices is a line that no test looks at. It runs gremlins, pinned, over each
// target, takes out the changes that mean the same (equivalent.txt, each with its
// reason), and fails when less than 95 % of what is left was noticed.
//
//	go run ./internal/tools/mutate [TARGET …]
//
// Run it from the module's root; without names it runs all targets.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
)

// efficacy is the share of the covered changes that tests must notice, in per cent.
const efficacy = 95

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	known, err := readEquivalents("internal/tools/mutate/equivalent.txt")
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range targets() {
		if len(names) > 0 && !slices.Contains(names, t.name) {
			continue
		}
		found, err := t.mutate(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		failed = append(failed, report(t, found, known))
	}
	if len(failed) == 0 {
		return errors.New("no target of that name")
	}
	return errors.Join(failed...)
}

// report prints a target's result; the error says that it is not good enough, or
// that equivalent.txt names changes that are no survivors any more.
func report(t target, found []mutant, known *equivalents) error {
	killed, lived := 0, 0
	for _, m := range found {
		switch {
		case m.status == "KILLED":
			killed++
		case m.status == "LIVED" && !known.has(m):
			lived++
			fmt.Printf("  not noticed: %s\n", m)
		}
	}
	if killed+lived == 0 {
		return fmt.Errorf("%s: nothing was changed", t.name)
	}
	percent := 100 * float64(killed) / float64(killed+lived)
	fmt.Printf("%-12s %d changes noticed of %d: %.1f %%\n", t.name, killed, killed+lived, percent)
	var errs []error
	if percent < efficacy {
		errs = append(errs, fmt.Errorf("%s: %.1f %% is less than %d %%", t.name, percent, efficacy))
	}
	for _, line := range known.unused(t, found) {
		errs = append(errs, fmt.Errorf("equivalent.txt: no such survivor: %s", line))
	}
	return errors.Join(errs...)
}
