package pinentry

import (
	"context"
	"errors"
	"slices"
	"time"

	"gpg-bridge/internal/retry"
)

const (
	// accountTries is how often the connections are counted at most, accountPause is the
	// pause before each count, and accountBeyond is at how many counts the agent must have
	// more of them than are listed.
	accountTries  = 20
	accountPause  = 50 * time.Millisecond
	accountBeyond = 6
)

// ErrUnsettled says that the connections of an agent kept changing while they were counted.
var ErrUnsettled = errors.New("the agent's connections changed while they were counted")

// AccountFor counts the clients of an agent at one moment between its call and its
// return. list is ConnectionsOf, and count asks the agent how many connections it has; sure
// is false if the agent may not count one of our own yet.
//
// Neither is complete by itself: the system does not list connections from another network
// namespace, and the agent only gives a number. So a connection that begins or ends
// between the two would make up for one that is not listed, and hide it. The agent's
// number also lags behind: it counts a connection from the start of its thread, which is
// after the system lists it, to the end of that thread, which is after the system no
// longer does. Therefore all of these must hold for a result:
//
//   - The system lists the same connections, with the same other ends, before and after the
//     agent has counted.
//   - The count is sure, so that the threads of our own have begun; and each connection
//     was already there accountPause before. The latter is for clients that have gone:
//     nothing shows whether their threads have begun, but few go before they are greeted.
//   - The agent does not have fewer than are listed.
//   - If it has more, it does so at accountBeyond such counts: one may only be a thread that
//     has not ended yet.
//
// If they do not hold in accountTries counts, the error is ErrUnsettled, and the result
// only what was listed last. Other errors are ctx's, list's and count's.
func AccountFor(ctx context.Context, list func() (Connections, error), count func() (all int, sure bool, err error)) (Clients, error) {
	earlier, err := list()
	if err != nil {
		return Clients{}, err
	}
	beyond, times := 0, 0
	for range accountTries {
		if err := retry.Sleep(ctx, accountPause, nil); err != nil {
			return Clients{}, err
		}
		before, all, sure, after, err := take(list, count)
		if err != nil {
			return Clients{}, err
		}
		if more := all - len(before); sure && slices.Equal(before, after) && before.follow(earlier) && more >= 0 {
			if more == 0 {
				return after.clients(0), nil
			}
			if times++; times == 1 || more < beyond {
				beyond = more
			}
			if times == accountBeyond {
				return after.clients(beyond), nil
			}
		}
		earlier = after
	}
	return earlier.clients(0), ErrUnsettled
}

func take(list func() (Connections, error), count func() (int, bool, error)) (before Connections, all int, sure bool, after Connections, err error) {
	if before, err = list(); err != nil {
		return nil, 0, false, nil, err
	}
	if all, sure, err = count(); err != nil {
		return nil, 0, false, nil, err
	}
	after, err = list()
	return before, all, sure, after, err
}
