package prepare

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

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
	marker, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil {
		return err
	}
	marker = strings.TrimSuffix(marker, "\n")
	_, writeErr := io.WriteString(stdout, strings.ReplaceAll(h.text, "m ", marker+" "))
	if h.stays && writeErr == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return h.end
}

func prepareWith(t *testing.T, h printer) (*Preparation, error) {
	t.Helper()
	p, err := Prepare(t.Context(), h, Options{Wanted: []Key{{Fingerprint: keyA}, {Fingerprint: keyB}}})
	if err == nil {
		_, _ = p.Wait()
	}
	return p, err
}

func TestReportIsRead(t *testing.T) {
	p, err := prepareWith(t, printer{text: "motd\nm start\r\n\nm version 2.4.8\nrc m\nm ready /run/a b\nm missing " + keyB + "\nm compared\n"})
	require.NoError(t, err)
	require.Equal(t, "/run/a b", p.Socket)
	require.Equal(t, "2.4.8", p.Version)
	require.Equal(t, []string{keyB}, p.Missing)
}

func TestReportOfTheMessageOfTheDayIsBounded(t *testing.T) {
	var motd []string
	text := "rc\nm start\nm motd \x1b[1mhi\nm motd \n" + strings.Repeat("m motd more\n", 1000) + "m held /s\n"
	_, err := Prepare(t.Context(), printer{text: text}, Options{MOTD: func(lines []string) { motd = lines }})
	require.Error(t, err, "also where there will be no bridge")
	require.Len(t, motd, maxMOTD)
	require.Equal(t, []string{"\x1b[1mhi", "", "more"}, motd[:3])
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
		"key before ready":    "m start\nm missing " + keyA + "\nm ready /s\n",
		"hung before ready":   "m start\nm hung import\nm ready /s\n",
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
	begin := "m start\nm ready /s\nm missing " + keyA + "\nm compared\n"
	for name, test := range map[string]struct {
		text     string
		imported bool
	}{
		"imported":    {begin + "m imported " + keyA + "\nm done\n", true},
		"of others":   {begin + "m imported " + keyB + "\nm done\n", false},
		"after done":  {begin + "m done\nm imported " + keyA + "\n", false},
		"nothing":     {begin, false},
		"foreign key": {"m start\nm ready /s\nm missing " + strings.Repeat("C", 40) + "\nm imported " + keyA + "\n", false},
		"key twice":   {"m start\nm ready /s\nm missing " + keyA + "\nm missing " + keyA + "\nm imported " + keyA + "\n", false},
		"key late":    {begin + "m missing " + keyB + "\n", false},
		"hung":        {begin + "m hung import 12 \x1bnode /a b\n", false},
		"hung what":   {begin + "m hung sshd\n", false},
		"two ready":   {begin + "m ready /t\nm imported " + keyA + "\n", false},
		"many notes":  {begin + strings.Repeat("m note \x1bx\n", 100) + "m imported " + keyA + "\n", true},
		"only a note": {begin + "m note \x1bx\nm done\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Prepare(t.Context(), printer{text: test.text}, Options{Wanted: []Key{{Fingerprint: keyA}, {Fingerprint: keyB}}})
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

// noSessionError says that no session was opened.
type noSessionError struct{}

func (*noSessionError) Error() string   { return "refused" }
func (*noSessionError) NoSession() bool { return true }

// Where no session was opened, nothing is known of a shell.
func TestPrepareWithoutASession(t *testing.T) {
	_, err := prepareWith(t, printer{end: fmt.Errorf("run sh: %w", &noSessionError{})})
	require.EqualError(t, err, "prepare the host: refused")
	_, isSame := errors.AsType[*noSessionError](err)
	require.True(t, isSame)
}

// A shell that ran the script's first line is one.
func TestPrepareTellsAHungProgramFromNoShell(t *testing.T) {
	for text, program := range map[string]string{"m start\n": "gpgconf", "": ""} {
		synctest.Test(t, func(t *testing.T) {
			_, err := prepareWith(t, printer{text: text, stays: true})
			hung, isHung := errors.AsType[*HungError](err)
			_, noShell := errors.AsType[*NoShellError](err)
			require.Equal(t, program == "", noShell)
			require.Equal(t, program != "", isHung)
			if isHung {
				require.Equal(t, program, hung.Program)
				require.NotEmpty(t, hung.Hint())
			}
		})
	}
}

// TestPrepareCommandQuotesForEveryShell: what login shells take differently is
// not in the command, whatever the data.
func TestPrepareCommandQuotesForEveryShell(t *testing.T) {
	options := Options{Takeover: true, Evict: true, Wanted: []Key{
		{Fingerprint: strings.Repeat("0123456789ABCDEF", 4), OwnerTrust: 255},
	}}
	command := commandFor(newMarker(), options)
	require.NotContains(t, command, `\`)
	require.NotContains(t, command, "\n")
	require.NotContains(t, command, "!")
	require.Equal(t, 4, strings.Count(command, "'"), "two words are quoted")
	for _, standIn := range standIns {
		require.NotContains(t, compact(commonBody+prepareBody+inspectBody), string(standIn))
	}
	const most = 7000 // it leaves with TCP's first window, of 14,600 bytes (RFC 6928), beside others
	require.Less(t, len(command), most)

	// However many keys are wanted.
	for range 7000 {
		options.Wanted = append(options.Wanted, Key{Fingerprint: keyA, SelfSignatures: []string{"-20-1", "01234567-18-1234567890"}})
	}
	require.Less(t, len(commandFor(newMarker(), options)), most)
	options.Wanted = options.Wanted[:70]
	command = commandFor(newMarker(), options)
	require.Contains(t, command, keyA+":-20-1,01234567-18-1234567890 "+keyA)
	require.Less(t, len(command), 6000+maxWantedWord)
	require.Equal(t, 4, strings.Count(command, "'"))
}

func TestQuote(t *testing.T) {
	require.Equal(t, `'it'\''s $(x)'`, quote("it's $(x)"))
}
