package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	signaturesPerRound = 20
	rounds             = 3
)

// signatures times 20 signatures in sequence by the host's gpg, for each way to forward in turn,
// three times, and compares the medians.
func signatures(ctx context.Context, l *lab) {
	columns := l.columns()
	times := make([][]time.Duration, len(columns))
	for range rounds {
		for i, c := range columns {
			l.with(c, func() { times[i] = append(times[i], l.signMany(ctx)) })
		}
	}
	fmt.Printf("%d signatures in sequence by gpg on the host, median of %d rounds\n\n", signaturesPerRound, rounds)
	fmt.Printf("%-20s %10s %10s %10s %12s\n", "", "min", "median", "max", "gpg-bridge")
	ours := median(times[0])
	for i, c := range columns {
		fmt.Printf("%-20s %10s %10s %10s %11.2fx\n", c.name, ms(slices.Min(times[i])), ms(median(times[i])), ms(slices.Max(times[i])), ours.Seconds()/median(times[i]).Seconds())
	}
}

func (l *lab) signMany(ctx context.Context) time.Duration {
	start := time.Now()
	for range signaturesPerRound {
		l.must(l.sign(ctx))
	}
	return time.Since(start)
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000) }
