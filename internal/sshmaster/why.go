package sshmaster

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"gpg-bridge/internal/link/mux"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/login"
)

// ticketPatience bounds the look for a Kerberos ticket.
const ticketPatience = 300 * time.Millisecond

// maxJumps is how many jump hosts are looked at; the client that dials has the same limit.
const maxJumps = 16

// A Reason says why the user's own ssh is to connect. Vital: our client cannot do without what it
// names, or would log in again where ssh would not.
type Reason struct {
	Text  string
	Vital bool

	ofSession bool
}

// Why returns the reasons for which the user's own ssh is to connect to a host; none: our client
// does all that is asked for. Where a jump host's connection is concerned, the Text says so.
func Why(ctx context.Context, c *config.Config) []Reason {
	ticket := sync.OnceValue(func() bool { return hasTicket(ctx) })
	reasons := whyHost(ctx, c, ticket)
	for jumps := 0; c.ProxyJump != "" && jumps < maxJumps; jumps++ {
		options, err := c.JumpOptions()
		if err != nil {
			break // whoever connects says so
		}
		if c, err = config.Resolve(ctx, options); err != nil {
			break
		}
		for _, r := range whyHost(ctx, c, ticket) {
			if r.Vital && !r.ofSession {
				reasons = append(reasons, Reason{Text: fmt.Sprintf("jump host %q: %s", options.Destination, r.Text), Vital: true})
			}
		}
	}
	return reasons
}

// whyHost returns the reasons that one host's configuration has.
func whyHost(ctx context.Context, c *config.Config, ticket func() bool) []Reason {
	var reasons []Reason
	for _, lack := range c.Lacks {
		if lack.Keyword == config.GSSAPI && !lack.Vital {
			if lack.Vital = ticket(); !lack.Vital {
				continue // ssh goes on with the next method, as we do
			}
		}
		reasons = append(reasons, Reason{lack.String(), lack.Vital, lack.OfSession})
	}
	for _, list := range sshfwd.Lacking(c) {
		reasons = append(reasons, Reason{Text: list, Vital: true})
	}
	for _, file := range login.ForeignKeys(ctx, c) {
		reasons = append(reasons, Reason{Text: "the key in " + file, Vital: true})
	}
	switch {
	case runtime.GOOS == "windows": // ssh shares nothing there
	case c.ControlMaster:
		reasons = append(reasons, Reason{Text: "ControlMaster", Vital: true})
	case c.ControlPath != "" && mux.IsShared(ctx, c.ControlPath):
		reasons = append(reasons, Reason{Text: "an ssh that shares its connection", Vital: true})
	}
	return reasons
}

// hasTicket reports whether the user has a Kerberos ticket, with which ssh would log in before it
// tries anything else. klist(1) -s says nothing, and fails without a valid one. Without klist
// there is hardly a ticket.
func hasTicket(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, ticketPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "klist", "-s")
	cmd.WaitDelay = ticketPatience
	return cmd.Run() == nil
}
