package prepare

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
	maxReportLine  = 1024    // bytes of one of the script's lines, and of what is kept of any other
	maxReportBytes = 1 << 20 // bytes of everything that the host prints
	maxPerKey      = 256     // bytes more for each wanted key, for the lines about it
	maxText        = 500     // bytes that are kept of a message of gpg's, or of a line of the message of the day
	maxNotes       = 16      // messages of gpg --import that are kept
	maxMOTD        = 300     // lines of the message of the day that are kept
	maxFirstLine   = 200     // bytes that are kept of a line for an error
)

// gpgCommands are gpg's commands that the script kills when they take too long.
var gpgCommands = [...]string{"list-keys", "import", "import-ownertrust"}

var versionForm = regexp.MustCompile(`^[0-9][0-9A-Za-z.+~_-]{0,39}$`)

var (
	errReportLong  = errors.New("the host's shell printed too much")
	errReportEcho  = errors.New("what runs in place of a shell repeats its input")
	errReportOrder = errors.New("the host's report is out of order")
)

// verdict is the script's verdict on the socket's path.
type verdict struct {
	word   string // "ready", "self", "held", "own", "nogpg" or "error"
	detail string // of nogpg: the program; of error: the reason
	socket string
	pid    int // of own
}

// isAnswer reports whether the verdict says who answers at the socket, and not that there is
// none.
func (v verdict) isAnswer() bool {
	return v.word == "ready" || v.word == "self" || v.word == "held" || v.word == "own"
}

// hostReport parses what the host prints: it is the standard output of the script.
// Lines without the marker come from the start-up files and are dropped, except the
// first. One goroutine writes. Others may read verdict, early, version, motd and foreign
// after decided is closed, missing and stale after compared is closed, and everything else
// after the script has ended.
type hostReport struct {
	marker     string
	wanted     map[string]bool
	inspecting bool // see Inspect

	line  []byte
	total int
	most  int // the bound of total

	foreign  firstLine
	begun    func() // Options.Begun
	started  bool
	version  string
	motd     []string
	verdict  verdict
	decided  chan struct{} // closed by the verdict or the first error
	missing  []string
	stale    []string
	lacked   map[string]importState // of the missing and the stale keys
	compared chan struct{}          // closed when missing and stale are complete
	complete bool                   // the host said that it has compared the keys
	imported []string
	notes    []string
	hung     *HungError // the first program that hung
	done     bool
	finished chan struct{} // closed when done
	err      error         // ends the parsing
	early    error         // err, if it came before the verdict
}

// importState says what became of a key that the host lacks.
type importState uint8

const (
	notLacked importState = iota
	lacked
	imported
)

func newHostReport(marker string, wanted []string) *hostReport {
	r := &hostReport{
		marker: marker, wanted: map[string]bool{}, most: maxReportBytes + maxPerKey*len(wanted),
		lacked: map[string]importState{}, decided: make(chan struct{}), compared: make(chan struct{}),
		finished: make(chan struct{}),
	}
	for _, fingerprint := range wanted {
		r.wanted[fingerprint] = true
	}
	return r
}

// Write reads output of the host. After an error it reads no more.
func (r *hostReport) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && r.err == nil; {
		chunk, after, ended := bytes.Cut(rest, []byte("\n"))
		r.total += len(rest) - len(after)
		if r.total > r.most {
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
	if !isClosed(r.decided) {
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
	default:
		word, rest, _ := strings.Cut(text, " ")
		switch {
		case isText(word):
			rest = rest[:min(len(rest), maxText)]
		case len(line) > maxReportLine:
			r.fail(errReportLong)
			return
		}
		if err := r.fact(word, rest); err != nil {
			r.fail(err)
		}
	}
}

// isText reports whether the rest of a line with this word is text that somebody else
// has written. It may have any length.
func isText(word string) bool { return word == "note" || word == "motd" }

// fact reads one of the script's lines.
func (r *hostReport) fact(word, rest string) error {
	switch {
	case !isText(word) && hasControl(rest):
		return fmt.Errorf("%q in the host's report: %w", word, errPathControl)
	case r.done, r.started == (word == "start"):
		return errReportOrder
	case r.verdict.word == "ready", r.inspecting && r.verdict.isAnswer():
		return r.keyFact(word, rest)
	case r.verdict.word != "":
		return errReportOrder
	}
	switch word {
	case "start":
		r.started = true
		if r.begun != nil {
			r.begun()
		}
		return nil
	case "motd":
		if len(r.motd) < maxMOTD {
			r.motd = append(r.motd, rest)
		}
		return nil
	case "version":
		if versionForm.MatchString(rest) {
			r.version = rest
		}
		return nil
	}
	v, err := parseVerdict(word, rest)
	if err != nil {
		return err
	}
	r.verdict = v
	close(r.decided)
	return nil
}

// lackFact reads that the host lacks a key. That can be said only of a wanted key, and only
// once.
func (r *hostReport) lackFact(fingerprint string, list *[]string) error {
	if isClosed(r.compared) || !r.wanted[fingerprint] || r.lacked[fingerprint] != notLacked {
		return fmt.Errorf("the host misses a key that it was not asked for: %.80q", fingerprint)
	}
	*list = append(*list, fingerprint)
	r.lacked[fingerprint] = lacked
	return nil
}

// keyFact reads one of the script's lines after a verdict that does not end it: "ready",
// or any answer when the host is only inspected. Then nothing may be imported.
func (r *hostReport) keyFact(word, rest string) error {
	if r.inspecting && (word == "imported" || word == "note" || word == "hung" && !isListing(rest)) {
		return errReportOrder
	}
	switch word {
	case "missing":
		return r.lackFact(rest, &r.missing)
	case "stale":
		return r.lackFact(rest, &r.stale)
	case "compared":
		r.complete = true
		r.endComparison()
	case "imported":
		if r.lacked[rest] == lacked {
			r.imported = append(r.imported, rest)
			r.lacked[rest] = imported
		}
	case "note":
		if len(r.notes) < maxNotes {
			r.notes = append(r.notes, rest)
		}
	case "hung":
		return r.hungFact(rest)
	case "done":
		r.endComparison()
		r.done = true
		close(r.finished)
	default:
		return errReportOrder
	}
	return nil
}

func (r *hostReport) endComparison() {
	if !isClosed(r.compared) {
		close(r.compared)
	}
}

// isListing reports whether the rest of a line with the word "hung" is about gpg --list-keys.
func isListing(rest string) bool {
	command, _, _ := strings.Cut(rest, " ")
	return command == gpgCommands[0]
}

// hungFact reads that a command of gpg's hung: COMMAND [PID NODE LOCK].
func (r *hostReport) hungFact(rest string) error {
	command, holder, locked := strings.Cut(rest, " ")
	if !slices.Contains(gpgCommands[:], command) {
		return fmt.Errorf("the host's report has an unknown command: %.80q", command)
	}
	hung := &HungError{Program: "gpg --" + command}
	if fields := strings.SplitN(holder, " ", 3); locked && len(fields) == 3 {
		pid, _ := strconv.Atoi(fields[0]) // 0 if the lock file does not contain a process ID
		hung.Lock = &Lock{Path: fields[2], Node: fields[1], PID: pid}
	}
	if r.hung == nil {
		r.hung = hung
	}
	return nil
}

func parseVerdict(word, rest string) (verdict, error) {
	v := verdict{word: word}
	switch word {
	case "ready", "self", "held":
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

// Write reads output. It keeps only the first line.
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
	line = strings.TrimSpace(line)
	if f.text == "" {
		f.text = line[:min(len(line), maxFirstLine)]
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
