package background

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
)

// A Named is a host on the command line of status and down. It means all bridges to that host,
// whatever flags they were started with.
type Named struct {
	Host    string
	ID      string // of the target as the flags make it, or ""
	Address string // resolved, or ""
}

// Choose resolves the hosts. One that ssh cannot resolve may still be a bridge's name.
func Choose(ctx context.Context, spec target.Spec, hosts []string) []Named {
	if len(hosts) == 0 {
		return nil
	}
	all := make([]Named, len(hosts))
	home := target.AskHome(ctx)
	defer home.Stop()
	var resolving sync.WaitGroup
	for i, host := range hosts {
		all[i].Host = host
		resolving.Go(func() { all[i].resolve(ctx, spec, home) })
	}
	resolving.Wait()
	return all
}

func (c *Named) resolve(ctx context.Context, spec target.Spec, home *target.Home) {
	spec.Host = c.Host
	options := spec.SSH()
	options.BatchMode = true
	if t, err := target.Resolve(ctx, spec, options, home); err == nil {
		c.ID, c.Address = t.ID, t.Address
	}
}

// IsMeant reports whether the user means this bridge.
func (c *Named) IsMeant(status share.Status) bool {
	return status.Target == c.Host || status.ID == c.Host || c.Address != "" && status.Address == c.Address
}

// Among returns those of the bridges that are meant.
func (c *Named) Among(all []share.Status) []share.Status {
	return slices.DeleteFunc(slices.Clone(all), func(s share.Status) bool { return !c.IsMeant(s) })
}

// A NoBridgeError says that there is no bridge to this host.
type NoBridgeError struct{ Host string }

// Error is for the user.
func (e *NoBridgeError) Error() string { return fmt.Sprintf("no bridge to %q", e.Host) }

// Hint says what to do.
func (e *NoBridgeError) Hint() string {
	return "gpg-bridge status lists those that there are; gpg-bridge up starts one"
}

// IsSilent reports whether there is a bridge that does not answer.
func (c *Named) IsSilent(dir *share.Dir) bool {
	if c.ID == "" {
		return false
	}
	held, err := dir.Held(c.ID)
	return err == nil && held
}
