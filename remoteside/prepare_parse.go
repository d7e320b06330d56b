package remoteside

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxReportLine  = 1024    // bytes of one line of the script's, and of a foreign line that is kept
	maxReportBytes = 1 << 20 // of all that the host prints
	maxNotes       = 16      // lines of gpg --import that are kept
	maxFirstLine   = 200     // bytes of what stands in an error
)

var versionForm = regexp.MustCompile(`^[0-9][0-9A-Za-z.+~_-]{0,39}$`)

var (
	errReportLong  = errors.New("the host's shell printed too much")
	errReportEcho  = errors.New("what runs in place of a shell repeats its input")
	errReportOrder = errors.New("the host's report is out of order")
)

// verdict is how the preparation ended, in the script's words.
type verdict struct {
	word   string // "ready", "held", "own", "nogpg" or "error"
	detail string // nogpg, error: which
	socket string
	pid    int // own
}

// hostReport parses what the host prints: it is the standard output of the script.
// Lines without the marker are the rc files' and are dropped, except the first.
// One goroutine writes. Others read verdict, early, version, missing and foreign
// once decided is closed, and the rest when the script has ended.
type hostReport struct {
	marker string
	wanted []string

	line  []byte
	total int

	foreign  firstLine
	started  bool
	version  string
	missing  []string
	verdict  verdict
	decided  chan struct{} // closed by the verdict or the first error
	imported []string
	notes    []string
	done     bool
	err      error // ends the parsing
	early    error // err, if it came before the verdict
}

func newHostReport(marker string, wanted []string) *hostReport {
	return &hostReport{marker: marker, wanted: wanted, decided: make(chan struct{})}
}

// Write takes output of the host. After an error it takes no more.
func (r *hostReport) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && r.err == nil; {
		chunk, after, ended := bytes.Cut(rest, []byte("\n"))
		r.total += len(rest) - len(after)
		if r.total > maxReportBytes {
			r.fail(errReportLong)
			break
		}
		r.line = append(r.line, chunk[:min(len(chunk), maxReportLine+1-len(r.line))]...)
		if ended {
			r.take(strings.TrimSuffix(string(r.line), "\r"))
			r.line = r.line[:0]
		}
		rest = after
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

func (r *hostReport) fail(err error) {
	r.err = err
	select {
	case <-r.decided:
	default:
		r.early = err
		close(r.decided)
	}
}

func (r *hostReport) take(line string) {
	text, ours := strings.CutPrefix(line, r.marker+" ")
	switch {
	case !ours && strings.Contains(line, r.marker):
		r.fail(errReportEcho)
	case !ours:
		r.foreign.take(line)
	case len(line) > maxReportLine:
		r.fail(errReportLong)
	default:
		word, rest, _ := strings.Cut(text, " ")
		if err := r.fact(word, rest); err != nil {
			r.fail(err)
		}
	}
}

// fact takes one line of the script's.
func (r *hostReport) fact(word, rest string) error {
	switch {
	case word != "note" && hasControl(rest):
		return fmt.Errorf("%q in the host's report: %w", word, errPathControl)
	case r.done, r.started == (word == "start"):
		return errReportOrder
	case r.verdict.word == "ready":
		return r.importFact(word, rest)
	case r.verdict.word != "":
		return errReportOrder
	}
	switch word {
	case "start":
		r.started = true
		return nil
	case "version":
		if versionForm.MatchString(rest) {
			r.version = rest
		}
		return nil
	case "missing":
		return r.missingFact(rest)
	}
	v, err := parseVerdict(word, rest)
	if err != nil {
		return err
	}
	r.verdict = v
	close(r.decided)
	return nil
}

// missingFact: only what was asked for can be missing, and only once.
func (r *hostReport) missingFact(fingerprint string) error {
	if !slices.Contains(r.wanted, fingerprint) || slices.Contains(r.missing, fingerprint) {
		return fmt.Errorf("the host misses a key that it was not asked for: %.80q", fingerprint)
	}
	r.missing = append(r.missing, fingerprint)
	return nil
}

func (r *hostReport) importFact(word, rest string) error {
	switch word {
	case "imported":
		if slices.Contains(r.missing, rest) && !slices.Contains(r.imported, rest) {
			r.imported = append(r.imported, rest)
		}
	case "note":
		if len(r.notes) < maxNotes {
			r.notes = append(r.notes, rest)
		}
	case "done":
		r.done = true
	default:
		return errReportOrder
	}
	return nil
}

func parseVerdict(word, rest string) (verdict, error) {
	v := verdict{word: word}
	switch word {
	case "ready", "held":
		v.socket = rest
	case "own":
		pid, path, _ := strings.Cut(rest, " ")
		number, err := strconv.Atoi(pid)
		if err != nil || number <= 0 {
			return v, fmt.Errorf("the host's report of its agent: not a process id: %.80q", pid)
		}
		v.pid, v.socket = number, path
	case "nogpg":
		v.detail = rest
		return v, nil
	case "error":
		v.detail, v.socket, _ = strings.Cut(rest, " ")
		return v, nil
	default:
		return v, fmt.Errorf("the host's report has an unknown word: %.80q", word)
	}
	if err := checkSocketPath(v.socket); err != nil {
		return v, &SocketPathError{Path: v.socket, Reason: err.Error()}
	}
	return v, nil
}

// firstLine keeps the first line that is not empty, for an error message.
type firstLine struct {
	text string
	line []byte
}

// Write takes output line by line; nothing but the first one is held.
func (f *firstLine) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && f.text == ""; {
		chunk, after, ended := bytes.Cut(rest, []byte("\n"))
		f.line = append(f.line, chunk[:min(len(chunk), maxFirstLine-len(f.line))]...)
		if ended {
			f.flush()
		}
		rest = after
	}
	return len(p), nil
}

func (f *firstLine) flush() {
	f.take(string(f.line))
	f.line = f.line[:0]
}

func (f *firstLine) take(line string) {
	if line = strings.TrimSpace(line); f.text == "" && line != "" {
		f.text = line[:min(len(line), maxFirstLine)]
	}
}
