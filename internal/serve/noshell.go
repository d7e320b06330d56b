package serve

import (
	"context"
	"errors"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/link"
	"gpg-bridge/internal/memory"
	"gpg-bridge/remoteside/prepare"
	"gpg-bridge/sshfwd"
)

// ErrSessionOver ends the start of a bridge whose session has ended by itself, not by its user:
// the host had all the time that a shell takes to begin.
var ErrSessionOver = errors.New("the session is over")

// startBridge starts the bridge, unless it is remembered that the account runs no shell: what
// it runs instead, perhaps a deployment, would be run once more for the preparation.
// --takeover tries again.
func (s *Service) startBridge(ctx context.Context, a Attempt, found bridge.Finding, options bridge.Options) (*bridge.Bridge, error) {
	if options.RemoteSocket != "" {
		return bridge.Start(ctx, a.Connection, a.Local, found, options)
	}
	accounts := memory.NewAccounts(memory.Dir(), s.Log)
	account, forced := sshfwd.AccountOf(s.Target.Config), false
	if client := a.Connection.Client; client != nil {
		account, forced = client.Account(), client.CommandForced()
	}
	known := accounts.NoShell(account)
	if forced {
		return nil, &prepare.NoShellError{Forced: true}
	}
	if known.Known(time.Now()) && !options.Takeover {
		return nil, &prepare.NoShellError{Known: known.Found, Again: known.Until}
	}
	up, err := bridge.Start(ctx, a.Connection, a.Local, found, options)
	if err == nil {
		accounts.SetNoShell(account, memory.NoShell{})
	} else if seen := noShellIn(err); seen != noSign {
		accounts.SetNoShell(account, remembered(known, seen, time.Now()))
	}
	return up, err
}

// A sign is evidence that the account runs something that is not a shell.
type sign uint8

const (
	noSign     sign = iota
	silentSign      // it had not begun to run the preparation when its time was over
	endSign         // it printed something else, and ended with a status
	echoSign        // it repeats its input, as no shell does
)

// noShellIn returns the sign in the error of a preparation. A session that has run to its end,
// and the time for closing after it, are longer than a shell takes to begin.
func noShellIn(err error) sign {
	if _, unstarted := errors.AsType[*prepare.UnstartedError](err); unstarted {
		if errors.Is(err, ErrSessionOver) {
			return silentSign
		}
		return noSign
	}
	none, ok := errors.AsType[*prepare.NoShellError](err)
	exit, failed := errors.AsType[*link.ExitError](err)
	switch {
	case !ok || link.NothingRan(err):
		return noSign
	case none.Echo:
		return echoSign
	case none.FirstLine != "" && (none.Err == nil || failed && exit.Signal == ""):
		return endSign
	}
	return silentSign
}

// How long a first and a second sign are believed.
const (
	firstSignLasts  = time.Hour
	secondSignLasts = 24 * time.Hour
)

// remembered returns what is known of an account after a sign. A host on which a start-up file
// hangs or fails just once gives a sign, too. So the first counts for an hour; the next after
// that, if no shell was seen in between, for a day; and only one after that day for good,
// unless it is a silentSign.
func remembered(known memory.NoShell, seen sign, now time.Time) memory.NoShell {
	lasts, before := firstSignLasts, known.Until.Sub(known.Found)
	forGood := !known.Found.IsZero() && known.Until.IsZero()
	switch {
	case seen == echoSign, forGood && seen == endSign:
		return memory.NoShell{Found: now}
	case known.Found.IsZero():
	case forGood:
		lasts = secondSignLasts
	case known.Known(now): // --takeover has tried early
		lasts = before
	case before >= secondSignLasts && seen == endSign:
		return memory.NoShell{Found: now}
	default:
		lasts = secondSignLasts
	}
	return memory.NoShell{Found: now, Until: now.Add(lasts)}
}
