package remoteside

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

// prepareTimeout bounds the time until the host has said what it found: what
// runs in place of a shell may say nothing for ever.
const prepareTimeout = 30 * time.Second

var (
	errNoVerdict = fmt.Errorf("no answer from its shell within %v", prepareTimeout)
	errEnded     = errors.New("the preparation has ended")
)

// A Host runs commands.
type Host interface {
	// Run runs command with the account's shell, without a terminal, and
	// returns when it has ended and its output is written, or when ctx ends.
	// It does not wait for a Read of stdin that is under way: the caller
	// ends stdin afterwards.
	Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error
}

// A Key is a public key that the host shall have.
type Key struct {
	Fingerprint string // of the primary key, in upper-case hex
	OwnerTrust  int    // as in gpg --export-ownertrust, 2 to 6; 0: none is set
}

// PrepareOptions say what to do on the host.
type PrepareOptions struct {
	// Takeover takes the socket from the live forward of another connection,
	// which is otherwise a *HeldError.
	Takeover bool

	// Evict stops a running agent of the host's own, which is otherwise an
	// *OwnAgentError.
	Evict bool

	// Wanted are the public keys that the host shall have.
	Wanted []Key

	// Export gives the public keys of these fingerprints in a form that gpg
	// --import takes. It is called at most once, with the Wanted ones that the
	// host lacks, from another goroutine.
	Export func(ctx context.Context, fingerprints []string) ([]byte, error)
}

func (o *PrepareOptions) fingerprints() ([]string, error) {
	var fingerprints []string
	for _, key := range o.Wanted {
		if !fingerprintForm.MatchString(key.Fingerprint) {
			return nil, fmt.Errorf("not a fingerprint: %.80q", key.Fingerprint)
		}
		if key.OwnerTrust < 0 || key.OwnerTrust > 255 {
			return nil, fmt.Errorf("not an ownertrust of %s: %d", key.Fingerprint, key.OwnerTrust)
		}
		fingerprints = append(fingerprints, key.Fingerprint)
	}
	return fingerprints, nil
}

// A Preparation is a host where the socket's path is free, and where missing
// public keys are being imported. Its owner must call Wait.
type Preparation struct {
	Socket  string   // where gpg on the host looks for its agent
	Version string   // of gpg on the host, "" if there is only gpgconf
	Missing []string // fingerprints that the host lacked

	report    *hostReport
	stderr    firstLine
	cancel    context.CancelFunc
	stdin     *io.PipeReader
	running   sync.WaitGroup
	ended     chan struct{} // closed when the command has ended
	runErr    error         // owned by run until ended is closed
	exportErr error         // owned by feed
}

// ImportResult is what became of the keys that the host lacked.
type ImportResult struct {
	Imported []string // fingerprints
	Notes    []string // what gpg on the host said, not to be trusted
}

// Prepare makes the host ready for a forward, with one command: it finds where
// gpg there looks for its agent, makes that socket's directory, removes a stale
// socket or stops the agent behind it, and imports the missing public keys. It
// returns as soon as the path is free, while the import runs; ctx bounds both.
//
// The error is a *NoShellError, *NoGPGError, *HeldError, *OwnAgentError or
// *SocketPathError, or else what came between; then nothing of it runs any more.
func Prepare(ctx context.Context, host Host, options PrepareOptions) (*Preparation, error) {
	fingerprints, err := options.fingerprints()
	if err != nil {
		return nil, fmt.Errorf("prepare the host: %w", err)
	}
	marker := newMarker()
	p := &Preparation{report: newHostReport(marker, fingerprints), ended: make(chan struct{})}
	running, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	reader, writer := io.Pipe()
	p.stdin = reader
	p.running.Go(func() { p.run(running, host, prepareCommand(marker, options)) })
	p.running.Go(func() { p.feed(running, writer, marker, options.Export) })
	if err := p.verdict(ctx); err != nil {
		p.join()
		return nil, err
	}
	p.Socket, p.Version, p.Missing = p.report.verdict.socket, p.report.version, p.report.missing
	return p, nil
}

// run owns the command. The feeder is released when it has ended.
func (p *Preparation) run(ctx context.Context, host Host, command string) {
	defer close(p.ended)
	p.runErr = host.Run(ctx, command, p.stdin, p.report, &p.stderr)
	_ = p.stdin.CloseWithError(errEnded)
}

// feed writes the command's input: a line with the marker, and the keys when the
// host is ready. What runs in place of a shell and waits for input (cat,
// sftp-server) shows by that line that it does.
func (p *Preparation) feed(ctx context.Context, w *io.PipeWriter, marker string, export func(context.Context, []string) ([]byte, error)) {
	defer func() { _ = w.Close() }()
	if _, err := io.WriteString(w, marker+"\n"); err != nil {
		return
	}
	select {
	case <-p.report.decided:
	case <-p.ended:
		return
	case <-ctx.Done():
		return
	}
	if p.report.verdict.word != "ready" || len(p.report.missing) == 0 || export == nil {
		return
	}
	keys, err := export(ctx, p.report.missing)
	if err != nil {
		p.exportErr = err
		return
	}
	_, _ = w.Write(keys) // what is missing then is in the report
}

// join ends the command and waits for the goroutines.
func (p *Preparation) join() {
	p.cancel()
	p.running.Wait()
}

// verdict waits for what the host says, and is nil when it is ready.
func (p *Preparation) verdict(ctx context.Context) error {
	timeout := time.NewTimer(prepareTimeout)
	defer timeout.Stop()
	select {
	case <-p.report.decided:
		return p.decision()
	case <-timeout.C:
		p.join()
		return &NoShellError{FirstLine: p.said(), Err: errNoVerdict}
	case <-p.ended:
	}
	select {
	case <-p.report.decided: // in the last of its output
		return p.decision()
	default:
		return p.silence(ctx)
	}
}

// decision is what a verdict, or an error in the host's report, means.
func (p *Preparation) decision() error {
	if err := p.report.early; errors.Is(err, errReportEcho) {
		return &NoShellError{FirstLine: p.report.foreign.text, Err: err}
	} else if err != nil {
		return reportError(err)
	}
	switch v := p.report.verdict; v.word {
	case "ready":
		return nil
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
		return obstacle(v.detail, v.socket)
	}
}

// silence is the error of a command that ended without a verdict.
func (p *Preparation) silence(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("prepare the host: %w", context.Cause(ctx))
	case isLost(p.runErr):
		return fmt.Errorf("prepare the host: %w", p.runErr)
	case !p.report.started:
		return &NoShellError{FirstLine: p.said(), Err: p.runErr}
	case p.runErr != nil:
		return reportError(p.runErr)
	}
	return reportError(fmt.Errorf("its shell ended early; it says %q", p.said()))
}

// said is the first line that the host printed and that is not the script's.
// The command must have ended.
func (p *Preparation) said() string {
	p.report.foreign.take(strings.TrimSpace(string(p.report.line)))
	p.stderr.flush()
	if p.report.foreign.text != "" {
		return p.report.foreign.text
	}
	return p.stderr.text
}

// Wait waits for the import and for the command's end. The error is an
// *ImportError when keys are still missing on the host.
func (p *Preparation) Wait() (ImportResult, error) {
	p.running.Wait()
	p.cancel()
	result := ImportResult{Imported: p.report.imported, Notes: p.report.notes}
	missing := slices.DeleteFunc(slices.Clone(p.Missing), func(fingerprint string) bool {
		return slices.Contains(p.report.imported, fingerprint)
	})
	if len(missing) == 0 {
		return result, nil
	}
	failed := &ImportError{Missing: missing, Err: errors.Join(p.exportErr, p.report.err)}
	if failed.Err == nil && !p.report.done {
		failed.Err = p.runErr
	}
	if n := len(result.Notes); n > 0 {
		failed.Note = result.Notes[n-1]
	}
	return result, failed
}
