package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd/login"
)

const (
	// authRetry is the pause after the host turned down a log-in. agentRetry is the pause if
	// the ssh-agent did not sign: it may be locked, and the host has counted no attempt.
	authRetry  = 10 * time.Minute
	agentRetry = time.Minute
)

// DelayAfter returns the time before the next try, which is next unless err needs a longer
// one: a host may count the tries, and lock the account out.
func DelayAfter(err error, next time.Duration) time.Duration {
	var auth *login.AuthError
	var refused *login.AgentRefusedError
	switch {
	case errors.As(err, &refused):
		return max(next, agentRetry)
	case errors.As(err, &auth):
		return max(next, authRetry)
	}
	return next
}

// ConnectingAgain tells the user why there is no connection, and when there will be.
func ConnectingAgain(why error, in time.Duration) string {
	return fmt.Sprintf("%v; connecting again in %v", why, in.Round(time.Second/10))
}

// aliveTimeout is how long the host has to answer after a suspend.
const aliveTimeout = 5 * time.Second

// AskAlive ends a connection that did not survive a suspend.
func AskAlive(ctx context.Context, connection link.Link) {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	connection.CheckAlive(ctx)
}

// Pause waits for delay before the next try. It returns early after a suspend; when another
// process wants to use the bridge, since the host has just let its user in; and when also
// returns true, which is called at every tick of look, if that is not nil. holder is this
// process's lock, nil for none.
func Pause(ctx context.Context, delay time.Duration, resumed <-chan struct{}, holder *share.Holder, look <-chan time.Time, also func() bool) error {
	if holder == nil {
		return retry.Sleep(ctx, delay, resumed)
	}
	select {
	case <-holder.Leased(): // while the last try was under way
	default:
	}
	first := min(delay, retry.ReconnectMin)
	if err := retry.Sleep(ctx, first, nil); err != nil || first == delay {
		return err
	}
	timer := time.NewTimer(delay - first)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-resumed:
			return nil
		case <-holder.Leased():
			return nil
		case <-look:
			if also() {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
