package remoteside

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	keyA = strings.Repeat("A", 40)
	keyB = strings.Repeat("B", 64)
)

// printer is a host that prints a text, with m for the marker of the script it
// was given, and reads nothing more. With stays it runs until it is ended.
type printer struct {
	text  string
	end   error
	stays bool
}

func (h printer) Run(ctx context.Context, _ string, stdin io.Reader, stdout, _ io.Writer) error {
	script := make([]byte, 64)
	if _, err := io.ReadFull(stdin, script); err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(script), "mark='")
	marker, _, _ := strings.Cut(rest, "'")
	_, writeErr := io.WriteString(stdout, strings.ReplaceAll(h.text, "m ", marker+" "))
	if h.stays && writeErr == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return h.end
}

func prepareWith(t *testing.T, h printer) (*Preparation, error) {
	t.Helper()
	p, err := Prepare(t.Context(), h, PrepareOptions{Wanted: []Key{{Fingerprint: keyA}, {Fingerprint: keyB}}})
	if err == nil {
		_, _ = p.Wait()
	}
	return p, err
}

func TestReportIsRead(t *testing.T) {
	p, err := prepareWith(t, printer{text: "motd\nm start\r\n\nm version 2.4.8\nrc m\nm missing " + keyB + "\nm ready /run/a b\n"})
	require.NoError(t, err)
	require.Equal(t, "/run/a b", p.Socket)
	require.Equal(t, "2.4.8", p.Version)
	require.Equal(t, []string{keyB}, p.Missing)
}

func TestReportOddVersionIsLeftOut(t *testing.T) {
	p, err := prepareWith(t, printer{text: "m start\nm version $(reboot)\nm ready /s\n"})
	require.NoError(t, err)
	require.Empty(t, p.Version)
}

func TestReportThatIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"relative path":       "m start\nm ready s\n",
		"no path":             "m start\nm ready\n",
		"long path":           "m start\nm ready /" + strings.Repeat("x", 107) + "\n",
		"control character":   "m start\nm ready /\x1bs\n",
		"carriage return":     "m start\nm ready /s\rx\n",
		"NUL":                 "m start\nm ready /s\x00\n",
		"before the start":    "m ready /s\n",
		"two starts":          "m start\nm start\n",
		"unknown word":        "m start\nm really /s\n",
		"unknown reason":      "m start\nm error really /s\n",
		"foreign key":         "m start\nm missing " + strings.Repeat("C", 40) + "\n",
		"key twice":           "m start\nm missing " + keyA + "\nm missing " + keyA + "\n",
		"not a process":       "m start\nm own -1 /s\n",
		"import before ready": "m start\nm imported " + keyA + "\n",
		"long line":           "m start\nm ready /" + strings.Repeat("x", maxReportLine) + "\n",
		"flood":               "m start\n" + strings.Repeat("x", maxReportBytes) + "\n",
		"end without verdict": "m start\nm version 2.2.40\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := prepareWith(t, printer{text: text})
			require.Error(t, err)
			require.False(t, hasControl(err.Error()), "%q", err)
			require.Less(t, len(err.Error()), 600)
			var noShell *NoShellError
			require.Equal(t, false, errors.As(err, &noShell), "it is not that there is no shell")
		})
	}
}

func TestReportAfterReadyIsBoundedToo(t *testing.T) {
	begin := "m start\nm missing " + keyA + "\nm ready /s\n"
	for name, test := range map[string]struct {
		text     string
		imported bool
	}{
		"imported":    {begin + "m imported " + keyA + "\nm done\n", true},
		"of others":   {begin + "m imported " + keyB + "\nm done\n", false},
		"after done":  {begin + "m done\nm imported " + keyA + "\n", false},
		"nothing":     {begin, false},
		"two ready":   {begin + "m ready /t\nm imported " + keyA + "\n", false},
		"many notes":  {begin + strings.Repeat("m note \x1bx\n", 100) + "m imported " + keyA + "\n", true},
		"only a note": {begin + "m note \x1bx\nm done\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Prepare(t.Context(), printer{text: test.text}, PrepareOptions{Wanted: []Key{{Fingerprint: keyA}, {Fingerprint: keyB}}})
			require.NoError(t, err)
			require.Equal(t, "/s", p.Socket)
			result, err := p.Wait()
			require.Equal(t, test.imported, err == nil, "%v", err)
			require.Equal(t, test.imported, len(result.Imported) == 1)
			require.LessOrEqual(t, len(result.Notes), maxNotes)
			if err != nil {
				require.NotContains(t, err.Error(), "\x1b")
			}
		})
	}
}

func TestPrepareEndsTheCommandAfterItsVerdict(t *testing.T) {
	_, err := prepareWith(t, printer{text: "m start\nm held /s\n", stays: true})
	var held *HeldError
	require.ErrorAs(t, err, &held)
}

func TestPrepareKeepsHowTheCommandEnded(t *testing.T) {
	lost := errors.New("connection lost")
	_, err := prepareWith(t, printer{text: "m start\n", end: lost})
	require.ErrorIs(t, err, lost)
	_, err = prepareWith(t, printer{end: lost})
	require.ErrorIs(t, err, lost)
}

func TestQuote(t *testing.T) {
	require.Equal(t, `'it'\''s $(x)'`, quote("it's $(x)"))
}

// FuzzReport: whatever the host prints, in whatever pieces, the parser holds
// little and lets through only what it checked.
func FuzzReport(f *testing.F) {
	for _, seed := range []string{
		"m start\nm version 2.2.40\nm missing " + keyA + "\nm ready /s\nm imported " + keyA + "\nm note x\nm done\n",
		"m start\nm own 12 /s\n", "m start\nm error file /s\n", "x\nm start\nm nogpg\n", "m start\nm held /s\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		r := newHostReport("m", []string{keyA, keyB})
		for len(text) > 0 && r.err == nil {
			n := min(len(text), int(step)+1)
			_, _ = r.Write(text[:n])
			text = text[n:]
		}
		require.LessOrEqual(t, len(r.line), maxReportLine+1)
		require.LessOrEqual(t, len(r.foreign.text), maxFirstLine)
		require.LessOrEqual(t, len(r.missing), 2)
		require.LessOrEqual(t, len(r.notes), maxNotes)
		if r.verdict.word == "ready" {
			require.NoError(t, checkSocketPath(r.verdict.socket))
		}
		if r.verdict.word != "" || r.err != nil {
			<-r.decided
		}
	})
}
