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
	"time"

	"github.com/stretchr/testify/require"
)

// Each bound of the preparation is tried at its value and one beyond.

func TestOptionsAreChecked(t *testing.T) {
	for trust, ok := range map[int]bool{-1: false, 0: true, 6: true, 255: true, 256: false} {
		_, err := (&Options{Wanted: []Key{{Fingerprint: keyA, OwnerTrust: trust}}}).fingerprints()
		require.Equal(t, ok, err == nil, "%d", trust)
	}
	for home, ok := range map[string]bool{"": true, "/": true, "/a b": true, "a": false, "~": false, "/\n": false, "/\x7f": false} {
		_, err := (&Options{Home: home}).fingerprints()
		require.Equal(t, ok, err == nil, "%q", home)
	}
	for token, ok := range map[string]bool{"": true, "a": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a b": false, "Q": false} {
		_, err := (&Options{Token: token}).fingerprints()
		require.Equal(t, ok, err == nil, "%q", token)
	}
	for signature, ok := range map[string]bool{"-20-1": true, "01234567-18-1234567890": true, "-20-": false, "-2-1": false, "012345678-18-1": false, "": false} {
		_, err := (&Options{Wanted: []Key{{Fingerprint: keyA, SelfSignatures: []string{signature}}}}).fingerprints()
		require.Equal(t, ok, err == nil, "%q", signature)
	}
	got, err := (&Options{Wanted: []Key{{Fingerprint: keyA}, {Fingerprint: keyB}}}).fingerprints()
	require.NoError(t, err)
	require.Equal(t, []string{keyA, keyB}, got)
}

// gpg --import has 10 seconds, and a second more for every 20 keys.
func TestImportPatience(t *testing.T) {
	for keys, want := range map[int]time.Duration{0: 10 * time.Second, 19: 10 * time.Second, 20: 11 * time.Second, 7000: 6 * time.Minute} {
		require.Equal(t, want, importTimeout(keys))
	}
}

// recorded is a host that records the command and what it reads up to the second
// line, and prints as printer does.
type recorded struct {
	text          string
	command       *string
	marker, extra *string
}

func (h recorded) Run(_ context.Context, command string, stdin io.Reader, stdout, _ io.Writer) error {
	*h.command = command
	in := bufio.NewReader(stdin)
	marker, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	*h.marker = strings.TrimSuffix(marker, "\n")
	if strings.Contains(command, "wanted=Q-Q") {
		if *h.extra, err = in.ReadString('\n'); err != nil {
			return err
		}
	}
	if in.Buffered() > 0 {
		return errors.New("there is more than was asked for")
	}
	_, err = io.WriteString(stdout, strings.ReplaceAll(h.text, "m ", *h.marker+" "))
	return err
}

// What is wanted goes into the command as long as it has room there, else to its
// input.
func TestWantedOfExactlyTheLimit(t *testing.T) {
	signatures := []string{"01234567-18-123", "01234567-18-1234"}
	for range 353 {
		signatures = append(signatures, "01234567-18-1234567890")
	}
	for more, inCommand := range map[string]bool{"": true, "5": false} {
		signatures[0] = "01234567-18-123" + more
		options := Options{Wanted: []Key{{Fingerprint: keyA, SelfSignatures: signatures}}}
		require.Len(t, options.wantedWords(), maxWantedWord+len(more))
		var command, marker, extra string
		p, err := Prepare(t.Context(), recorded{"m start\nm ready /s\nm compared\nm done\n", &command, &marker, &extra}, options)
		require.NoError(t, err)
		_, err = p.Wait()
		require.NoError(t, err)
		require.Equal(t, inCommand, strings.Contains(command, options.wantedWords()))
		require.Equal(t, !inCommand, extra == options.wantedWords()+"\n")
	}
}

func TestReportOfExactlyTheLimit(t *testing.T) {
	begin := "m start\n"
	for size, ok := range map[int]bool{maxReportBytes + 2*maxPerKey: true, maxReportBytes + 2*maxPerKey + 1: false} {
		for _, step := range []int{1000, 1 << 21} {
			r := newHostReport("m", []string{keyA, keyB})
			text := begin + strings.Repeat(strings.Repeat("x", 999)+"\n", (size-len(begin))/1000)
			text += strings.Repeat("y", size-len(text)-1) + "\n"
			require.Len(t, text, size)
			for at := 0; at < len(text) && r.err == nil; at += step {
				_, _ = r.Write([]byte(text[at:min(len(text), at+step)]))
			}
			require.Equal(t, ok, r.err == nil, "%d", size)
		}
	}
	for length, ok := range map[int]bool{maxReportLine: true, maxReportLine + 1: false} {
		r := newHostReport("m", nil)
		line := "m held /" + strings.Repeat("x", length-len("m held /"))
		_, err := r.Write([]byte(begin + line + "\n"))
		require.Error(t, err, "longer than a socket's path")
		require.Equal(t, ok, !errors.Is(err, errReportLong))
	}
	for length, want := range map[int]int{maxText - 1: maxText - 1, maxText: maxText, maxText + 1: maxText, 100_000: maxText} {
		r := newHostReport("m", nil)
		text := strings.Repeat("x", length)
		_, err := r.Write([]byte(begin + "m motd " + text + "\nm ready /s\nm note " + text + "\n"))
		require.NoError(t, err)
		require.Equal(t, []string{text[:want]}, r.motd)
		require.Equal(t, []string{text[:want]}, r.notes)
	}
	r := newHostReport("m", []string{keyA})
	_, err := r.Write([]byte(begin + strings.Repeat("m motd x\n", maxMOTD+1) + "m ready /s\n" + strings.Repeat("m note x\n", maxNotes+1)))
	require.NoError(t, err)
	require.Len(t, r.motd, maxMOTD)
	require.Len(t, r.notes, maxNotes)
}

func TestFirstLineOfExactlyTheLimit(t *testing.T) {
	for length, want := range map[int]int{maxFirstLine - 1: maxFirstLine - 1, maxFirstLine: maxFirstLine, maxFirstLine + 1: maxFirstLine} {
		var f firstLine
		for _, c := range strings.Repeat("x", length) + "\nsecond\n" {
			_, _ = f.Write([]byte(string(c)))
			require.LessOrEqual(t, len(f.line), maxFirstLine)
		}
		require.Len(t, f.text, want)
		f = firstLine{}
		_, _ = f.Write([]byte(" \n\n" + strings.Repeat("x", length)))
		f.flush()
		require.Len(t, f.text, want)
		f.take(" other ")
		require.Len(t, f.text, want)
		f = firstLine{}
		for range 3 {
			_, _ = f.Write([]byte(strings.Repeat("x", length)))
			require.LessOrEqual(t, len(f.line), maxFirstLine)
		}
		f = firstLine{}
		f.take("  " + strings.Repeat("x", length))
		require.Len(t, f.text, want)
	}
}

func TestSocketPathsOfTheHost(t *testing.T) {
	for path, want := range map[string]error{
		"/s": nil, "/ s~": nil, "s": errPathRelative, "": errPathRelative, "/" + strings.Repeat("x", 106): nil,
		"/" + strings.Repeat("x", 107): errPathLong, "/\x1f": errPathControl, "/\x7f": errPathControl, "/\x80": nil,
	} {
		require.Equal(t, want, checkSocketPath(path), "%q", path)
	}
	for pid, ok := range map[string]bool{"1": true, "0": false, "-1": false, "x": false, "": false} {
		v, err := parseVerdict("own", pid+" /s")
		require.Equal(t, ok, err == nil, pid)
		require.Equal(t, ok, v.socket == "/s")
	}
}

// Only the keys that are set to be trusted are named, and of those only the ones
// that the host lacked.
func TestTrustWords(t *testing.T) {
	options := Options{Wanted: []Key{{Fingerprint: keyA, OwnerTrust: 1}, {Fingerprint: keyB}, {Fingerprint: "C", OwnerTrust: 6}}}
	require.Equal(t, keyA+":1: C:6:", options.trustWords([]string{keyA, keyB, "C"}))
	require.Equal(t, "C:6:", options.trustWords([]string{"C", "D"}))
	require.Empty(t, options.trustWords(nil))
}

// hostFunc is a host that answers what the function prints, with m for the marker,
// and reads all that it is given.
type hostFunc func(ctx context.Context, say func(string), inputEnds <-chan struct{}) error

func (h hostFunc) Run(ctx context.Context, _ string, stdin io.Reader, stdout, stderr io.Writer) error {
	in := bufio.NewReader(stdin)
	marker, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	inputEnds := make(chan struct{})
	go func() { // until Run has ended, with which stdin ends
		defer close(inputEnds)
		_, _ = io.Copy(io.Discard, in)
	}()
	_, _ = io.WriteString(stderr, "\nsh: it says\nmore\n")
	return h(ctx, func(text string) {
		_, _ = io.WriteString(stdout, strings.ReplaceAll(text, "m ", strings.TrimSuffix(marker, "\n")+" "))
	}, inputEnds)
}

// What is told of a command that ends or is ended before its report is whole.
func TestHowTheComparisonEnded(t *testing.T) {
	const ready, lacks = "m start\nm ready /s\n", "m missing "
	for name, c := range map[string]struct {
		text   string
		cut    bool
		end    error
		nobody bool // no key is wanted
		want   string
	}{
		"ended by us":                  {text: ready, cut: true, end: errPlayed, want: "gpg --list-keys on the host hangs"},
		"ended by us, no key":          {text: ready, cut: true, end: errPlayed, nobody: true},
		"ended in order meanwhile":     {text: ready, cut: true},
		"ended by itself":              {text: ready, end: errPlayed},
		"compared, ended by us":        {text: ready + "m compared\n", cut: true, end: errPlayed},
		"import ended by us":           {text: ready + lacks + keyA + "\nm compared\n", cut: true, end: errPlayed, want: errAbandoned.Error()},
		"import ended by itself":       {text: ready + lacks + keyA + "\nm compared\n", end: errPlayed, want: "host: " + errPlayed.Error()},
		"import ended, done":           {text: ready + lacks + keyA + "\nm compared\nm done\n", end: errPlayed, want: "could not be imported on the host"},
		"import hangs":                 {text: ready + lacks + keyA + "\nm compared\nm note a\nm note b\nm hung import\nm done\n", want: `gpg --import on the host hangs: "b"`},
		"import hangs at a lock":       {text: ready + lacks + keyA + "\nm compared\nm note a\nm hung import 12 node /l k\nm done\n", want: `process 12 of "node" holds "/l k"`},
		"hangs, with what is no lock":  {text: ready + "m compared\nm hung import 12 node\nm done\n", want: "gpg --import on the host hangs"},
		"the first that hangs is told": {text: ready + "m compared\nm hung import\nm hung list-keys\nm done\n", want: "gpg --import on the host hangs"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			options := Options{Wanted: []Key{{Fingerprint: keyA}}}
			if c.nobody {
				options.Wanted = nil
			}
			p, err := Prepare(ctx, hostFunc(func(ctx context.Context, say func(string), _ <-chan struct{}) error {
				say(c.text)
				if c.cut {
					<-ctx.Done()
				}
				return c.end
			}), options)
			require.NoError(t, err)
			if c.cut {
				cancel()
			}
			_, err = p.Wait()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			if name == "import hangs at a lock" {
				require.NotContains(t, err.Error(), `"a"`, "the lock is the reason, and no note beside it")
			}
			if name == "import ended, done" {
				require.NotErrorIs(t, err, errPlayed)
			}
		})
	}
}

// The message of the day is shown where there is one, and its lines are not asked of
// a host that has said nothing yet.
func TestMessageOfTheDayIsShownOnce(t *testing.T) {
	for text, want := range map[string]int{"m start\nm held /s\n": 0, "m start\nm motd x\nm held /s\n": 1, "m start\nm motd x\n": 0} {
		shown := 0
		_, err := Prepare(t.Context(), printer{text: text}, Options{MOTD: func(lines []string) {
			require.Equal(t, []string{"x"}, lines)
			shown++
		}})
		require.Error(t, err)
		require.Equal(t, want, shown, "%q", text)
	}
	_, err := Prepare(t.Context(), printer{text: "m start\nm motd x\nm held /s\n"}, Options{})
	require.Error(t, err)
}

// What the host says in place of a verdict is what stands in the error.
func TestWordsOfTheHost(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "sh: it says",
		"\n \nno shell here\nmore":   "no shell here",
		" half a line":               "half a line",
		"m start\nm nogpg gpgconf\n": "no gpgconf in the PATH",
		"m start\nm nogpg gpg\n":     "no gpg in the PATH",
		"m start\nm own 12 /s\n":     "process 12",
		"m start\nrc\n":              `it says "rc"`,
	} {
		_, err := Prepare(t.Context(), hostFunc(func(_ context.Context, say func(string), _ <-chan struct{}) error {
			say(text)
			return nil
		}), Options{})
		require.ErrorContains(t, err, want, "%q", text)
	}
}

// The keys are exported where some are lacked, once, and those that are known to be
// old as well; then the host has the time for them, and no more.
func TestExportOfWhatIsLacked(t *testing.T) {
	for text, want := range map[string][]string{
		"m compared\n":                         nil,
		"m missing " + keyA + "\nm compared\n": {keyA},
		"m stale " + keyB + "\nm missing " + keyA + "\nm compared\n": {keyA, keyB},
	} {
		for _, fails := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				start := time.Now()
				p, err := Prepare(t.Context(), hostFunc(func(ctx context.Context, say func(string), inputEnds <-chan struct{}) error {
					say("m start\nm ready /s\n" + text)
					if want == nil {
						return nil
					}
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-inputEnds:
						return nil
					}
				}), Options{
					Wanted: []Key{{Fingerprint: keyA}, {Fingerprint: keyB}},
					Export: func(_ context.Context, lacked []string) ([]byte, error) {
						require.Empty(t, asked)
						asked = lacked
						if fails {
							return nil, errPlayed
						}
						return []byte("keys"), nil
					},
				})
				require.NoError(t, err)
				if want == nil {
					<-p.ended // which makes no difference
				}
				require.Equal(t, want == nil, p.HasAll(t.Context()))
				_, err = p.Wait()
				if want == nil {
					require.NoError(t, err)
					require.Empty(t, asked)
					return
				}
				failed, ok := errors.AsType[*ImportError](err)
				require.True(t, ok)
				require.Equal(t, want, failed.Missing)
				require.Equal(t, want, asked)
				require.Equal(t, fails, errors.Is(err, errPlayed))
				if !fails {
					require.ErrorIs(t, err, errAbandoned)
					require.Equal(t, importTimeout(2)+importGrace, time.Since(start))
				}
			})
		}
	}
}

// An error names the key, or how many there are.
func TestImportErrorNamesTheKey(t *testing.T) {
	require.EqualError(t, &ImportError{Missing: []string{keyA}}, fmt.Sprintf("the public key %s could not be imported on the host", keyA))
	two := &ImportError{Missing: []string{keyA, keyB}, Err: errPlayed, Note: "n"}
	require.EqualError(t, two, `2 public keys could not be imported on the host: test: "n"`)
	require.Contains(t, two.Hint(), "gpg --import")
	require.Contains(t, (&ImportError{Err: &HungError{Program: "gpg"}}).Hint(), "waits for")
}
