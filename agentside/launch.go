package agentside

import (
	"context"
	"errors"
	"net"
)

// errDisabled says that the agent runs and listens nowhere that we may use.
var errDisabled = &hintedError{
	text: "gpg-agent was started, but it does not listen",
	hint: "remove extra-socket from gpg-agent.conf, then restart it: gpgconf --kill gpg-agent",
}

// startAndDial starts the agent where try found none, and tries again. Many
// sessions may find out at once: one of them starts it, the others wait for
// that and find it running. Each wait ends with the starter's own ctx, so it
// is no longer than the time that a dial has.
func (l *Locator) startAndDial(ctx context.Context, try func(context.Context) (net.Conn, error)) (net.Conn, error) {
	l.launching.Lock()
	defer l.launching.Unlock()
	conn, err := try(ctx)
	if _, gone := errors.AsType[*NoAgentError](err); !gone {
		return conn, err
	}
	// gpgconf returns once the agent can be connected to.
	if _, err := l.gpgconf(ctx, "--launch", "gpg-agent"); err != nil {
		return nil, err
	}
	conn, err = try(ctx)
	if _, gone := errors.AsType[*NoAgentError](err); gone {
		return nil, errDisabled
	}
	return conn, err
}
