package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/ui"
)

// table returns the bridges as a table for people to read.
func table(all []share.Status, now time.Time) string {
	if len(all) == 0 {
		return "no bridges\n"
	}
	var text strings.Builder
	rows := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	cells := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = oneCell(cell)
		}
		_, _ = fmt.Fprintln(rows, strings.Join(cells, "\t"))
	}
	cells("TARGET", "STATE", "FOR", "SESSIONS", "LAST OPERATION", "RECONNECTS", "REMOTE SOCKET", "AGENT")
	for _, s := range all {
		cells(s.Target, stateText(s), ago(now, s.Since), fmt.Sprintf("%d/%d", s.Sessions, s.SessionsTotal),
			operationText(s.LastOperation, now), fmt.Sprint(s.Reconnects), s.RemoteSocket, s.Agent)
	}
	_ = rows.Flush() // to a Builder
	lines := strings.SplitAfter(text.String(), "\n")
	var whole strings.Builder
	whole.WriteString(trimLine(lines[0]))
	for i, s := range all {
		whole.WriteString(trimLine(lines[i+1]))
		whole.WriteString(problemText(s, now))
	}
	return whole.String()
}

// oneCell makes a text fit into one cell.
func oneCell(text string) string {
	if text == "" {
		return "-"
	}
	return strings.ReplaceAll(ui.OneLine(text), "\t", " ")
}

func trimLine(line string) string { return strings.TrimRight(line, " \n") + "\n" }

// stateText returns the state, and the kind of process if that is not a background one.
func stateText(s share.Status) string {
	if s.Kind == share.Session {
		return fmt.Sprintf("%s (ssh, process %d)", s.State, s.PID)
	}
	return string(s.State)
}

// operationText returns a text such as "PKSIGN 3 min ago, 0.1 s, ok".
func operationText(o *share.Operation, now time.Time) string {
	if o == nil {
		return ""
	}
	key := ""
	if len(o.Key) >= 8 {
		key = " " + o.Key[:8]
	}
	return fmt.Sprintf("%s%s %s ago, %.1f s, %s", o.Verb, key, ago(now, o.At), float64(o.Millis)/1000, o.Outcome)
}

// problemText returns the last error and what to do, on lines of their own. An error that is
// over is marked as such.
func problemText(s share.Status, now time.Time) string {
	if s.Problem == nil {
		return ""
	}
	over := ""
	if s.State == share.Up && s.Problem.At.Before(s.Since) {
		over = ", over"
	}
	text := fmt.Sprintf("  %s ago%s: %s\n", ago(now, s.Problem.At), over, ui.OneLine(s.Problem.Text))
	if s.Problem.Remedy != "" && over == "" {
		text += "  " + ui.OneLine(s.Problem.Remedy) + "\n"
	}
	return text
}

// ago returns how long ago then was, in the largest unit that fits.
func ago(now, then time.Time) string {
	d := max(now.Sub(then), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// asciiJSON escapes unprintable characters in JSON's own way, so that the text means the same
// and cannot control a terminal. Such characters occur in strings only.
func asciiJSON(text []byte) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case unicode.IsPrint(r):
			b.Write(text[:size])
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String()
}
