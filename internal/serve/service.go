package serve

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/promptguard"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

// CloseTimeout bounds the tidying up on the host when a bridge ends.
const CloseTimeout = 5 * time.Second

// EndTimeout bounds the wait for the end of another process's bridge, which first tidies up on
// the host.
const EndTimeout = 2*CloseTimeout + 5*time.Second

// Options say what a Service is for.
type Options struct {
	Target *target.Target
	UI     *ui.UI
	Kind   share.Kind

	// Session: a session of the user's runs beside the bridge. Messages that would otherwise
	// come with every connection are then given only once in a while.
	Session bool

	// LoginShell: the path at which the gpg of a login shell looks is served, too. It is not
	// set for a single command, since finding out the path runs the user's start-up files.
	LoginShell bool

	// Unguarded: another program reads the user's terminal while this process lives.
	Unguarded bool
}

// A Service serves gpg on one target from this process. It outlives its connections, which
// come one after the other.
type Service struct {
	Options
	Log    *slog.Logger
	Status *Status
	Token  *Token

	refusals   refusals
	held       bool // at the last look, another connection had the path on the host
	loginAsked atomic.Bool
}

// New returns a Service whose status is that it connects.
func New(options Options) *Service {
	status := NewStatus(options.Target, options.Kind)
	return &Service{
		Options: options, Log: options.UI.Log(), Status: status, Token: &Token{status: status},
	}
}

// Begin starts what goes on during the log-in of one connection: the terminal is guarded, and
// the side with the keys checked. guard is nil if there is no terminal. check is not started if
// another connection had the path on the host at the last look: an agent that the user has ended
// must not be started for a path that is not free. The caller calls end when the connection has
// ended; end waits for messages that are being written.
func (s *Service) Begin(ctx context.Context) (local *bridge.Local, check *LocalCheck, guard *promptguard.Guard, end func()) {
	local = s.local()
	if !s.Unguarded {
		guard = promptguard.New(ctx, s.UI, local.Agent)
	}
	s.Status.watchedBy(guard)
	check = &LocalCheck{local: local}
	if !s.held {
		check.start(ctx)
	}
	return local, check, guard, func() {
		check.stop()
		guard.End()
		s.refusals.telling.Wait()
	}
}

// local returns the side with the keys, for one connection.
func (s *Service) local() *bridge.Local {
	local := s.Target.Spec.Local()
	local.PromptRefused = func(err *bridge.PromptError) {
		told := s.refusals.tell(func() { s.UI.Warn(err) })
		s.Status.promptRefused(err, told)
	}
	return local
}
