package fakesshd

import (
	"context"

	"golang.org/x/crypto/ssh"
)

// Faults are what a Server does that a good one would not. The zero value is a
// good server.
type Faults struct {
	// DenyForward refuses every forward, as AllowStreamLocalForwarding no.
	DenyForward bool
	// DenyDirect refuses every direct-streamlocal channel as administratively
	// prohibited.
	DenyDirect bool
	// HoldReplies delays the reply to every global request until it is closed, as on a
	// dead link.
	HoldReplies <-chan struct{}
	// NeverConfirm names the channel types whose open requests get no answer.
	NeverConfirm map[string]bool
	// BeforeGrant is called when a forward already listens but its success has not
	// been sent. It may open channels, early ones, for other paths, or of other types.
	BeforeGrant func(conn *Conn, path string)
	// DenySession refuses every session channel, as MaxSessions 0.
	DenySession bool
	// DenyStart refuses every exec, shell and subsystem request.
	DenyStart bool
	// Preface is sent before the identification string (RFC 4253 section 4.2).
	Preface []byte
	// KeyOffered is called for each key that a client offers or signs with. It
	// may use SendRaw; an error refuses the key.
	KeyOffered func(conn ssh.ConnMetadata) error
	// Questions, where not nil, are asked by keyboard-interactive (RFC 4256)
	// of clients that try it; nil lets them in.
	Questions func(conn ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) error
	// LoggedIn is called in a goroutine of its own when a client has been let
	// in; the Server waits for it. It may use SendRaw.
	LoggedIn func(conn *Conn)
	// NoExitStatus closes sessions without saying how their process ended.
	NoExitStatus bool
}

// wait returns true when gate is closed or nil, and false when ctx ends.
func (f *Faults) wait(ctx context.Context, gate <-chan struct{}) bool {
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-ctx.Done():
		return false
	}
}
