package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	openSessions = 200
	cpuCommands  = 100_000 // CPU seconds are given for so many
)

// The measures, one for each line of the table.
const (
	connections = iota
	connectionsAtOnce
	commands
	commandsAtOnce
	bulkToHost
	bulkFromHost
	cpuPerCommands
	rssIdle
	rssOpen
	numMeasures
)

var measures = [numMeasures]struct {
	name   string
	format string
	take   func(*lab, *lane) float64
}{
	connections:       {"connections/s, one by one", "%.0f", func(l *lab, on *lane) float64 { return l.connectMany(on, 1) }},
	connectionsAtOnce: {"connections/s, 16 at once", "%.0f", func(l *lab, on *lane) float64 { return l.connectMany(on, atOnce) }},
	commands:          {"commands/s, 1 session", "%.0f", func(l *lab, on *lane) float64 { return l.commandMany(on, 1) }},
	commandsAtOnce:    {"commands/s, 16 sessions", "%.0f", (*lab).commandsAndCPU},
	bulkToHost:        {"bulk to the host, MB/s", "%.0f", (*lab).bulkToHost},
	bulkFromHost:      {"bulk from the host, MB/s", "%.0f", (*lab).bulkFromHost},
	cpuPerCommands:    {"CPU s per 100,000 commands", "%.2f", nil}, // with commandsAtOnce
	rssIdle:           {"RSS idle, MB", "%.1f", nil},               // once, before the load
	rssOpen:           {"RSS with 200 sessions, MB", "%.1f", nil},  // once, after it
}

// throughput measures what passes through a forward that is up. All lanes are up at once, and
// in each round every measure is taken of one lane after the other, so that whatever else the
// machine does affects all lanes alike.
func throughput(l *lab, programs []string) {
	bulk := newBulkAgent(l)
	defer bulk.close()
	lanes := l.lanes(programs)
	for _, on := range lanes {
		l.doing = "start of " + on.name
		on.open(l, bulk.socket)
		on.note(rssIdle, on.rss(l))
	}
	for range l.rounds {
		for m, measure := range measures {
			for _, on := range lanes {
				l.doing = measure.name + ", " + on.name
				if measure.take != nil && strings.Contains(measure.name, l.only) {
					on.note(m, measure.take(l, on))
				}
			}
		}
	}
	for _, on := range lanes {
		l.doing = measures[rssOpen].name + ", " + on.name
		on.note(rssOpen, l.rssWhileOpen(on))
	}
	l.printThroughput(lanes, len(programs))
}

// note keeps a figure for the table.
func (on *lane) note(m int, figure float64) { on.got[m] = append(on.got[m], figure) }

// printThroughput prints the medians, and each program's ratio to the better
// one of OpenSSH's columns.
func (l *lab) printThroughput(lanes []*lane, programs int) {
	fmt.Printf("\nthrough a forward that is up, median of %d rounds, %s; the ratio is to the better ssh column\n\n%-28s",
		l.rounds, cmp.Or(l.cipher, "with the cipher that is negotiated"), "")
	for i, on := range lanes {
		fmt.Printf(" %16s", on.name)
		if i < programs {
			fmt.Printf(" %6s", "ratio")
		}
	}
	fmt.Println()
	for m, measure := range measures {
		if len(lanes[0].got[m]) == 0 {
			continue
		}
		fmt.Printf("%-28s", measure.name)
		best := better(lanes, m)
		for i, on := range lanes {
			fmt.Printf(" %16s", shown(measure.format, on.got[m]))
			if i < programs {
				fmt.Printf(" %6.2f", ratio(on.got[m], best.got[m]))
			}
		}
		fmt.Println()
	}
}

func shown(format string, figures []float64) string {
	if len(figures) == 0 || middle(figures) == 0 {
		return "-"
	}
	return fmt.Sprintf(format, middle(figures))
}

// better returns OpenSSH's lane with the better median.
func better(lanes []*lane, m int) *lane {
	var best *lane
	for _, on := range lanes {
		if !on.openSSH {
			continue
		}
		if best == nil || (middle(on.got[m]) > middle(best.got[m])) != (m >= cpuPerCommands) {
			best = on
		}
	}
	return best
}

// ratio returns the median of the rounds' ratios.
func ratio(ours, theirs []float64) float64 {
	var ratios []float64
	for i := range ours {
		ratios = append(ratios, ours[i]/theirs[i])
	}
	return middle(ratios)
}

func middle(figures []float64) float64 {
	if len(figures) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/2]
}
