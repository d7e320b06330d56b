package prepare

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// FuzzReport: whatever the host prints, in whatever pieces, the parser holds
// little, lets through only what it checked and what the script's own lines
// say, and what it says of it to the user is harmless; the pieces make no
// difference. The script's mark is m; it is the inspection's if the highest bit of step is
// set, and a piece has the rest of step and one byte.
func FuzzReport(f *testing.F) {
	for _, seed := range []string{
		"m start\nm version 2.2.40\nm ready /s\nm missing " + keyA + "\nm stale " + keyB + "\nm compared\nm hung import 1 n /l\nm imported " + keyA + "\nm note x\nm done\n",
		"m start\nm own 12 /s\n", "m start\nm error file /s\n", "x\nm start\nm nogpg\n", "m start\nm held /s\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	for _, verdict := range []string{"ready /s", "own 12 /s", "held /s", "self /s"} {
		f.Add([]byte("m start\nm version 2.4.7\nm "+verdict+"\nm missing "+keyA+"\nm stale "+keyB+"\nm compared\nm done\n"), inspectingBit|3)
	}
	f.Add([]byte("m start\nm held /s\nm hung list-keys 1 n /l\nm done\n"), inspectingBit|3)
	f.Add([]byte("m start\nm ready /s\nm missing "+keyA+"\nm compared\nm imported "+keyA+"\n"), inspectingBit|3)
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		inspecting := step&inspectingBit != 0
		r := readReport(text, int(step&^inspectingBit)+1, inspecting)
		whole := readReport(text, max(1, len(text)), inspecting)
		require.Equal(t, fmtReport(whole), fmtReport(r), "the pieces make a difference")
		require.LessOrEqual(t, len(r.line), maxReportLine+1)
		require.LessOrEqual(t, len(r.foreign.text), maxFirstLine)
		require.LessOrEqual(t, len(r.notes), maxNotes)
		requireReported(t, r, string(text))
		requireHarmless(t, r)
		select {
		case <-r.decided:
			require.True(t, r.verdict.word != "" || r.err != nil)
		default:
			require.True(t, r.verdict.word == "" && r.err == nil)
		}
	})
}

const inspectingBit = uint8(1 << 7)

func readReport(text []byte, step int, inspecting bool) *hostReport {
	r := newHostReport("m", []string{keyA, keyB})
	r.inspecting = inspecting
	for len(text) > 0 && r.err == nil {
		n := min(len(text), step)
		_, _ = r.Write(text[:n])
		text = text[n:]
	}
	return r
}

// fmtReport is what others learn of a report.
func fmtReport(r *hostReport) []any {
	return []any{r.started, r.version, r.missing, r.stale, r.verdict, r.imported, r.notes, r.hung, r.complete, r.done, r.err, r.early, r.foreign.text}
}

// requireReported requires that what was let through stands in a line that
// begins with the mark, and is of its kind.
func requireReported(t *testing.T, r *hostReport, text string) {
	says := func(words string) {
		line := regexp.MustCompile(`(?m)^m ` + regexp.QuoteMeta(words) + `(?: |\r?$)`)
		require.Regexp(t, line, text)
	}
	if r.started {
		says("start")
	}
	if len(r.missing)+len(r.stale) > 0 || r.complete || r.hung != nil || r.done {
		require.True(t, r.verdict.word == "ready" || r.inspecting && r.verdict.isAnswer(), r.verdict.word)
	}
	if r.inspecting {
		require.Empty(t, slices.Concat(r.imported, r.notes))
		require.True(t, r.hung == nil || r.hung.Program == "gpg --list-keys")
	}
	if r.complete {
		says("compared")
	}
	if r.hung != nil {
		says("hung " + strings.TrimPrefix(r.hung.Program, "gpg --"))
		require.Contains(t, gpgCommands, strings.TrimPrefix(r.hung.Program, "gpg --"))
	}
	for _, key := range r.missing {
		require.Contains(t, []string{keyA, keyB}, key)
		says("missing " + key)
	}
	for _, key := range r.stale {
		require.Contains(t, []string{keyA, keyB}, key)
		require.NotContains(t, r.missing, key)
		says("stale " + key)
	}
	for _, key := range r.imported {
		require.Contains(t, slices.Concat(r.missing, r.stale), key)
		says("imported " + key)
	}
	if r.version != "" {
		says("version " + r.version)
		require.LessOrEqual(t, len(r.version), 40)
		require.Regexp(t, `^[!-~]+$`, r.version)
	}
	if v := r.verdict; v.word != "" {
		require.True(t, r.started)
		says(v.word)
		require.NotContains(t, v.socket+v.detail, "\x1b")
	}
	if v := r.verdict; v.word == "ready" || v.word == "self" || v.word == "held" || v.word == "own" {
		require.Regexp(t, `^/`, v.socket)
		require.LessOrEqual(t, len(v.socket), 107)
		require.NotRegexp(t, "[\\x00-\\x1f\\x7f]", v.socket)
	}
}

// requireHarmless requires that nothing which the user is told of the report
// could do something to his terminal.
func requireHarmless(t *testing.T, r *hostReport) {
	p := &Preparation{report: r, ended: make(chan struct{}), cancel: func() {}}
	err := p.noVerdict(context.Background())
	if r.verdict.word != "" || r.early != nil {
		err = p.decision()
	}
	if err == nil && r.inspecting {
		err = p.unfinished(context.Background())
	} else if err == nil {
		_, err = p.Wait()
	}
	if err == nil {
		return
	}
	said := err.Error()
	if hinted, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		said += hinted.Hint()
	}
	for _, c := range said {
		require.True(t, unicode.IsPrint(c), "%q", said)
	}
	require.LessOrEqual(t, len(said), 4*maxReportLine)
}

// FuzzRefusal: whatever a host prints when it is asked why it refuses, the
// reason is one of those known, holds no text of the host's, and does not depend
// on the pieces; without the script's mark, here m, it is unknown.
func FuzzRefusal(f *testing.F) {
	f.Add("m nodir\n", uint8(1))
	f.Add("motd\nm exists\r\nm exists\n", uint8(200))
	f.Fuzz(func(t *testing.T, text string, step uint8) {
		whole, cut := answerWriter{mark: "m"}, answerWriter{mark: "m"}
		_, _ = io.WriteString(&whole, text)
		for rest := text; rest != ""; {
			n := min(len(rest), int(step)+1)
			_, _ = io.WriteString(&cut, rest[:n])
			rest = rest[n:]
			require.LessOrEqual(t, len(cut.line), maxFirstLine)
		}
		require.Equal(t, whole.word, cut.word)
		if whole.word != "" {
			require.Contains(t, "\n"+text, "\nm "+whole.word)
		}
		err := ExplainRefusal(t.Context(), printer{text: text}, "/s")
		refused, ok := errors.AsType[*RefusedError](err)
		require.True(t, ok)
		require.Less(t, int(refused.Refusal), len(refusals))
		require.NotRegexp(t, "[^ -~]", err.Error()+refused.Hint())
		if !strings.Contains(text, "m ") {
			require.Equal(t, RefusedUnknown, refused.Refusal)
		}
	})
}

// FuzzQuote: a word that is quoted for sh is that one word again, by the rules
// of POSIX for single quotes and backslashes.
func FuzzQuote(f *testing.F) {
	f.Add(`it's $(x) \'`)
	f.Fuzz(func(t *testing.T, word string) {
		got, rest := "", quote(word)
		for rest != "" {
			inner, opened := strings.CutPrefix(rest, "'")
			if !opened {
				require.Equal(t, `\'`, rest[:min(2, len(rest))], "something stands unquoted in %q", quote(word))
				got, rest = got+"'", rest[2:]
				continue
			}
			text, after, closed := strings.Cut(inner, "'")
			require.True(t, closed, "%q", quote(word))
			got, rest = got+text, after
		}
		require.Equal(t, word, got)
	})
}
