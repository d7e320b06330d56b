package prepare

import (
	"context"
	"time"
)

// Answers says who answers where gpg on the host looks for its agent.
type Answers uint8

const (
	AnswersNobody Answers = iota // a bridge may have the path
	AnswersOwn                   // the host's own agent
	AnswersHeld                  // an agent elsewhere: another connection forwards it
	AnswersSelf                  // it is the local agent's own directory; see Options.Token
)

// A Report says how a host is.
type Report struct {
	Socket  string // where gpg on the host looks for its agent, absolute; its directory may be missing
	Version string // of gpg on the host, "" if there is only gpgconf
	Answers Answers
	PID     int // on the host, of its own agent; only with AnswersOwn

	// Compared says that Missing and Stale are known. They are not if listing the
	// host's keys could change something there: they are behind a keyboxd that does not run, or
	// in a keyring that gpg.conf names.
	Compared bool
	Missing  []string   // fingerprints of the wanted keys that the host lacks
	Stale    []string   // fingerprints of those that lack a signature there
	Hung     *HungError // gpg that took too long to list the keys, or nil

	verdict verdict
}

// Err returns the error of Prepare, with neither Evict nor Takeover set, on such a host: nil
// if nobody answers, else an *OwnAgentError, *HeldError or *SelfError.
func (r *Report) Err() error { return r.verdict.err() }

// Inspect finds out how the host is, with one command that changes nothing there: no
// file or directory is made, removed or written to, and no agent or keyboxd is started or
// stopped. Of the options, Home, Token and Wanted are used. Whoever answers at the
// socket is asked what kind of agent it is.
//
// The error is one of Prepare's where there is nothing to report: a *NoShellError,
// *NoGPGError, *SocketPathError, *HomeError, *HungError, *ReportError or *UnstartedError, or
// one of the connection or of ctx.
func Inspect(ctx context.Context, host Host, options Options) (*Report, error) {
	p, err := Prepare(ctx, host, Options{
		Home: options.Home, Token: options.Token, Wanted: options.Wanted, inspect: true,
	})
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(Timeout, p.cancel)
	defer late.Stop()
	p.running.Wait()
	p.cancel()
	if err := p.unfinished(ctx); err != nil {
		return nil, err
	}
	v := p.report.verdict
	return &Report{
		Socket: v.socket, Version: p.report.version, Answers: v.answers(), PID: v.pid,
		Compared: p.report.complete && p.report.hung == nil || len(options.Wanted) == 0,
		Missing:  p.report.missing, Stale: p.report.stale, Hung: p.report.hung,
		verdict: v,
	}, nil
}

// unfinished returns the error of an inspection that has ended before it was done, or nil.
func (p *Preparation) unfinished(ctx context.Context) error {
	switch {
	case p.report.err != nil:
		return reportError(p.report.err)
	case p.report.done:
		return nil
	case p.cut && ctx.Err() == nil: // by Timeout
		return &HungError{Program: "gpg --list-keys"}
	}
	return p.noVerdict(ctx)
}

func (v verdict) answers() Answers {
	switch v.word {
	case "own":
		return AnswersOwn
	case "held":
		return AnswersHeld
	case "self":
		return AnswersSelf
	}
	return AnswersNobody
}

// Look is Inspect for who answers alone: it returns Inspect's error, or the report's. home is
// Options.Home.
func Look(ctx context.Context, host Host, home string) error {
	report, err := Inspect(ctx, host, Options{Home: home})
	if err != nil {
		return err
	}
	return report.Err()
}
