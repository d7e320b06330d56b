package gpghome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// pollInterval is how often a condition in another process is checked.
	pollInterval = 10 * time.Millisecond
	// stopGrace is how long an agent may take to end by itself.
	stopGrace = 2 * time.Second
)

// ErrNoAgent is returned where a running agent is needed and there is none.
var ErrNoAgent = errors.New("gpghome: no gpg-agent running")

// StartAgent starts the home's agent, unless one runs, and returns once it
// answers.
func (h *Home) StartAgent(ctx context.Context) error {
	if _, _, err := h.Run(ctx, nil, "gpgconf", "--launch", "gpg-agent"); err != nil {
		return fmt.Errorf("gpghome: %w", err)
	}
	_, err := h.AgentPID(ctx)
	return err
}

// StopAgent ends the agent and returns once its process is gone: by
// `gpgconf --kill`, and where that is not enough (an agent that hangs) by
// SIGKILL. It is not an error if none runs.
func (h *Home) StopAgent(ctx context.Context) error {
	pid, err := h.agentToStop(ctx)
	if err != nil || pid == 0 {
		return err
	}
	if err := h.askToEnd(ctx, pid); err == nil {
		h.agentPID.Store(0)
		return nil
	}
	return h.KillAgent(ctx)
}

// agentToStop returns the agent's process, or the last known one if the agent does not answer;
// 0 if none runs.
func (h *Home) agentToStop(ctx context.Context) (int, error) {
	asking, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	pid, err := h.AgentPID(asking)
	if err == nil {
		return pid, nil
	}
	pid = int(h.agentPID.Load())
	if pid != 0 && running(pid) {
		return pid, nil
	}
	if errors.Is(err, ErrNoAgent) {
		return 0, nil
	}
	return 0, err
}

func (h *Home) askToEnd(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if _, _, err := h.Run(ctx, nil, "gpgconf", "--kill", "gpg-agent"); err != nil {
		return err
	}
	return waitGone(ctx, pid)
}

// KillAgent ends the agent by SIGKILL, as a crash would: its sockets stay. It
// works on the process last seen, so that a hanging agent can be ended too.
func (h *Home) KillAgent(ctx context.Context) error {
	pid := int(h.agentPID.Load())
	if pid == 0 {
		return ErrNoAgent
	}
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill()
	}
	if err := waitGone(ctx, pid); err != nil {
		return fmt.Errorf("gpghome: gpg-agent %d does not end: %w", pid, err)
	}
	h.agentPID.Store(0)
	return nil
}

// SignalAgent sends a signal to the agent's process, the one last seen: an agent
// that was stopped cannot be asked.
func (h *Home) SignalAgent(sig os.Signal) error {
	pid := int(h.agentPID.Load())
	if pid == 0 {
		return ErrNoAgent
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }()
	return process.Signal(sig)
}

// RestartAgent stops the agent and starts it again.
func (h *Home) RestartAgent(ctx context.Context) error {
	if err := h.StopAgent(ctx); err != nil {
		return err
	}
	return h.StartAgent(ctx)
}

// ForgetPassphrases empties the agent's cache with a SIGHUP, which makes it reload.
func (h *Home) ForgetPassphrases(ctx context.Context) error {
	if _, _, err := h.Run(ctx, nil, "gpgconf", "--reload", "gpg-agent"); err != nil {
		return fmt.Errorf("gpghome: %w", err)
	}
	return nil
}

// AgentPID asks the agent for its process ID. The error is ErrNoAgent if none runs.
func (h *Home) AgentPID(ctx context.Context) (int, error) {
	out, errOut, err := h.Run(ctx, nil, "gpg-connect-agent", "--no-autostart", "GETINFO pid", "/bye")
	if ctx.Err() != nil {
		return 0, fmt.Errorf("gpghome: asking gpg-agent: %w", context.Cause(ctx))
	}
	for line := range strings.Lines(string(out)) {
		if data, ok := strings.CutPrefix(line, "D "); ok {
			pid, convErr := strconv.Atoi(strings.TrimSpace(data))
			if convErr != nil {
				return 0, fmt.Errorf("gpghome: gpg-agent's process id: %w", convErr)
			}
			h.agentPID.Store(int64(pid))
			return pid, nil
		}
	}
	// Without an agent gpg-connect-agent exits with 0 or 2, depending on its version; so only
	// data counts as an answer.
	if err == nil && len(out) > 0 {
		return 0, fmt.Errorf("gpghome: gpg-agent does not tell its process id: %q %q", out, errOut)
	}
	return 0, ErrNoAgent
}

// running reports whether a process runs. A zombie does not count: the agent is a daemon, and
// stays a zombie for ever where nobody reaps orphans.
func running(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }()
	if process.Signal(syscall.Signal(0)) != nil {
		return false
	}
	stat, err := readStat(pid)
	return err != nil || !stat.dead()
}

func waitGone(ctx context.Context, pid int) error {
	return waitFor(ctx, func() bool { return !running(pid) })
}

// waitFor returns once the condition holds, or with the context's cause.
func waitFor(ctx context.Context, condition func() bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}
