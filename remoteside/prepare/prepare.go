package prepare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Timeout bounds the time until the host has said what it found: what runs instead of
// a shell may never say anything.
const Timeout = 30 * time.Second

var (
	errNoVerdict = fmt.Errorf("no answer from its shell within %v", Timeout)
	errEnded     = errors.New("the preparation has ended")
	errAbandoned = errors.New("gpg --import there had not ended yet")
)

// A Host runs commands.
type Host interface {
	// Run runs command in the account's shell, without a terminal, and returns
	// when it has ended and its output is written, or when ctx ends. It does not
	// wait for a Read of stdin to return: the caller ends stdin afterwards.
	Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error
}

// A Preparation is a command on a host where the socket's path is free now. The command
// goes on to compare the public keys and to import the missing ones. The owner must
// call Wait.
type Preparation struct {
	Socket  string   // where gpg on the host looks for its agent
	Version string   // of gpg on the host, "" if there is only gpgconf
	Missing []string // fingerprints of the keys that the host lacked; set by Wait
	Stale   []string // fingerprints of those that lacked a signature there; set by Wait

	command   string
	report    *hostReport
	stderr    firstLine
	cancel    context.CancelFunc
	stdin     *io.PipeReader
	running   sync.WaitGroup
	ended     chan struct{} // closed when the command has ended
	runErr    error         // owned by run until ended is closed
	cut       bool          // we ended it; owned like runErr
	exportErr error         // owned by feed
}

// ImportResult says what became of the keys that the host lacked.
type ImportResult struct {
	Imported []string // fingerprints
	Notes    []string // the messages of gpg on the host, not to be trusted
}

// Prepare makes the host ready for a forward, with one command: it finds where
// gpg there looks for its agent, makes that socket's directory, removes a stale
// socket or stops the agent behind it, and imports the missing public keys. It
// returns as soon as the path is free, before gpg there has looked for any key;
// ctx bounds both.
//
// The error is a *NoShellError, *NoGPGError, *SelfError, *HeldError,
// *OwnAgentError, *SocketPathError, *HomeError, *HungError, *ReportError or
// *UnstartedError, or one of the connection or of ctx. The command has ended then, and
// there is nothing to wait for.
func Prepare(ctx context.Context, host Host, options Options) (*Preparation, error) {
	fingerprints, err := options.fingerprints()
	if err != nil {
		return nil, fmt.Errorf("prepare the host: %w", err)
	}
	marker := newMarker()
	p := &Preparation{command: commandFor(marker, options), report: newHostReport(marker, fingerprints), ended: make(chan struct{})}
	p.report.begun, p.report.inspecting = options.Begun, options.inspect
	running, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	reader, writer := io.Pipe()
	p.stdin = reader
	p.running.Go(func() { p.run(running, host) })
	p.running.Go(func() { p.feed(running, writer, marker, &options) })
	p.running.Go(p.endWhenDone)
	err = p.verdict(ctx)
	if isClosed(p.report.decided) && len(p.report.motd) > 0 && options.MOTD != nil {
		options.MOTD(p.report.motd)
	}
	if err != nil {
		p.join()
		return nil, err
	}
	p.Socket, p.Version = p.report.verdict.socket, p.report.version
	return p, nil
}

// importTimeout is how long gpg on the host may take to import this many keys: far
// more than it needs, unless it waits for a lock.
func importTimeout(keys int) time.Duration {
	return 10*time.Second + time.Duration(keys/20)*time.Second
}

// importGrace is how much longer we wait for the host's report of that. While the keys
// are being sent, the whole time starts again with each part of them.
const importGrace = 50 * time.Second

// keysPart is the size of such a part, in bytes: even a slow link carries it in seconds.
const keysPart = 32 << 10

// doneGrace is how long the command may go on after it has said that it is done.
const doneGrace = 5 * time.Second

// endWhenDone ends a command that has said that it is done and does not end by itself.
func (p *Preparation) endWhenDone() {
	select {
	case <-p.report.finished:
	case <-p.ended:
		return
	}
	late := time.AfterFunc(doneGrace, p.cancel)
	defer late.Stop()
	<-p.ended
}

// run runs the command. At its end it unblocks feed.
func (p *Preparation) run(ctx context.Context, host Host) {
	defer close(p.ended)
	p.runErr = host.Run(ctx, p.command, p.stdin, p.report, &p.stderr)
	p.cut = ctx.Err() != nil && p.runErr != nil
	_ = p.stdin.CloseWithError(errEnded)
}

// feed writes the command's input: a line with the marker; the wanted keys' names, if
// they did not fit in the command; and the keys, when the host has said which ones it
// lacks. The first line makes programs other than shells that wait for input (cat,
// sftp-server) print something, so that they are recognised.
func (p *Preparation) feed(ctx context.Context, w *io.PipeWriter, marker string, options *Options) {
	defer func() { _ = w.Close() }()
	first := marker + "\n"
	if wanted := options.wantedWords(); len(wanted) > maxWantedWord {
		first += wanted + "\n"
	}
	if _, err := io.WriteString(w, first); err != nil {
		return
	}
	select {
	case <-p.report.compared:
	case <-p.ended:
		return
	case <-ctx.Done():
		return
	}
	lacked := slices.Concat(p.report.missing, p.report.stale)
	if len(lacked) == 0 || options.Export == nil {
		return
	}
	keys, err := options.Export(ctx, lacked)
	if err != nil {
		p.exportErr = err
		return
	}
	timeout := importTimeout(len(options.Wanted)) + importGrace
	late := time.AfterFunc(timeout, p.cancel)
	defer late.Stop()
	// The errors do not matter: the report says what is missing then. There is no
	// ownertrust for a stale key: the host may have set its own.
	_, _ = io.WriteString(w, options.trustWords(p.report.missing)+"\n")
	for part := range slices.Chunk(keys, keysPart) {
		if _, err := w.Write(part); err != nil {
			return
		}
		late.Reset(timeout)
	}
	_, _ = io.WriteString(w, "\n"+marker+"\n")
	<-p.ended
}

// join ends the command and waits for the goroutines.
func (p *Preparation) join() {
	p.cancel()
	p.running.Wait()
}

// verdict waits for the host's verdict. It returns nil if the path is free.
func (p *Preparation) verdict(ctx context.Context) error {
	late := time.NewTimer(Timeout)
	defer late.Stop()
	select {
	case <-p.report.decided:
		return p.decision()
	case <-late.C:
		p.join()
		if p.report.started {
			return &HungError{Program: "gpgconf"}
		}
		return p.noShell(p.said(), errNoVerdict)
	case <-p.ended:
	}
	select {
	case <-p.report.decided: // by its last output
		return p.decision()
	default:
		return p.noVerdict(ctx)
	}
}

// decision returns the error that the host's verdict, or an error in its report, means.
func (p *Preparation) decision() error {
	if err := p.report.early; errors.Is(err, errReportEcho) {
		none := p.noShell(p.report.foreign.text, err)
		none.Echo = true
		return none
	} else if err != nil {
		return reportError(err)
	}
	v := p.report.verdict
	if p.report.inspecting && v.isAnswer() {
		return nil
	}
	return v.err()
}

// err returns the error that a verdict means, nil if the path is free.
func (v verdict) err() error {
	switch v.word {
	case "ready":
		return nil
	case "self":
		return &SelfError{Socket: v.socket}
	case "held":
		return &HeldError{Socket: v.socket}
	case "own":
		return &OwnAgentError{Socket: v.socket, PID: v.pid}
	case "nogpg":
		if v.detail == "gpgconf" {
			return &NoGPGError{Program: "gpgconf"}
		}
		return &NoGPGError{Program: "gpg"}
	default:
		return verdictError(v.detail, v.socket)
	}
}

// noVerdict returns the error of a command that ended without a verdict.
func (p *Preparation) noVerdict(ctx context.Context) error {
	switch {
	case ctx.Err() != nil && !p.report.started:
		return &UnstartedError{context.Cause(ctx)}
	case ctx.Err() != nil:
		return fmt.Errorf("prepare the host: %w", context.Cause(ctx))
	case isLost(p.runErr):
		return fmt.Errorf("prepare the host: %w", p.runErr)
	case noSession(p.runErr) != nil:
		return fmt.Errorf("prepare the host: %w", noSession(p.runErr))
	case !p.report.started:
		return p.noShell(p.said(), p.runErr)
	case p.runErr != nil:
		return reportError(p.runErr)
	}
	return reportError(fmt.Errorf("its shell ended early; it says %q", p.said()))
}

// noShell returns the error of an account that printed firstLine, perhaps after "unknown
// command", as git-shell and the like do.
func (p *Preparation) noShell(firstLine string, err error) *NoShellError {
	words, _, _ := strings.Cut(p.command, " '")
	return &NoShellError{FirstLine: firstLine, Err: err, Repeats: strings.Contains(firstLine, words)}
}

// said returns the first line that the host printed and that is not the script's. It
// may be called after the command's end.
func (p *Preparation) said() string {
	p.report.foreign.take(strings.TrimSpace(string(p.report.line)))
	p.stderr.flush()
	if p.report.foreign.text != "" {
		return p.report.foreign.text
	}
	return p.stderr.text
}

// HasAll waits until the host has compared its keys with the wanted ones, and
// reports whether it has all of them. It returns false if ctx or the command ends
// before that.
func (p *Preparation) HasAll(ctx context.Context) bool {
	select {
	case <-p.report.compared:
	case <-p.ended:
	case <-ctx.Done():
	}
	return isClosed(p.report.compared) && len(p.report.missing)+len(p.report.stale) == 0 && p.report.hung == nil
}

// Wait waits for the import and for the command's end. The error is an *ImportError
// if keys are still missing on the host, and a *HungError or *ReportError if that is not
// known.
func (p *Preparation) Wait() (ImportResult, error) {
	p.running.Wait()
	p.cancel()
	p.Missing, p.Stale = p.report.missing, p.report.stale
	result := ImportResult{Imported: p.report.imported, Notes: p.report.notes}
	missing := slices.DeleteFunc(slices.Concat(p.Missing, p.Stale), func(fingerprint string) bool {
		return p.report.lacked[fingerprint] == imported
	})
	switch {
	case len(missing) > 0:
		return result, p.importError(missing)
	case p.report.hung != nil:
		return result, p.report.hung
	case p.report.err != nil:
		return result, reportError(p.report.err)
	case !isClosed(p.report.compared) && p.cut && len(p.report.wanted) > 0:
		return result, &HungError{Program: "gpg --list-keys"}
	}
	return result, nil
}

func (p *Preparation) importError(missing []string) error {
	failed := &ImportError{Missing: missing, Err: errors.Join(p.exportErr, p.report.err)}
	if failed.Err != nil {
		return failed
	}
	switch hung := p.report.hung; {
	case hung != nil:
		failed.Err = hung
		if hung.Lock != nil {
			return failed
		}
	case p.cut && !p.report.done:
		failed.Err = errAbandoned
	case !p.report.done:
		failed.Err = p.runErr
	}
	if n := len(p.report.notes); n > 0 {
		failed.Note = p.report.notes[n-1]
	}
	return failed
}
