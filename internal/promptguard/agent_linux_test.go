package promptguard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/pinentry"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/ui"
)

// A promptTerminal is a terminal on which a real agent's pinentry asks.
type promptTerminal struct {
	home          *gpghome.Home
	master, slave *os.File
}

func newPromptSeat(t *testing.T, program string) *promptTerminal {
	t.Helper()
	master, slave, err := fakesshd.OpenPTY()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
	})
	home := gpghome.ForTest(t)
	link := filepath.Join(home.Dir(), "pinentry")
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(env.Tool(t, program), link))
	require.NoError(t, home.StartAgent(t.Context()))
	return &promptTerminal{home, master, slave}
}

func (s *promptTerminal) guard(t *testing.T, locator *agentside.Locator) *Guard {
	t.Helper()
	locator.Env = s.home.Env()
	guard := New(t.Context(), ui.New(s.slave, s.slave, s.slave), &agentside.Agent{Locator: locator})
	require.NotNil(t, guard)
	t.Cleanup(guard.End)
	return guard
}

// ask has the agent ask. When the prompt has the terminal, it returns the agent's process and
// the prompt's. Both are ended with the test.
func (s *promptTerminal) ask(t *testing.T) (agent int, prompt pinentry.Process) {
	t.Helper()
	agent, err := s.home.AgentPID(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		name := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.slave.Fd())
		if name, err := os.Readlink(name); err == nil {
			_, _, _ = s.home.Run(ctx, nil, "env", "GPG_TTY="+name, "TERM=xterm", "gpg-connect-agent", "--no-autostart", "GET_PASSPHRASE --data x x x x", "/bye")
		}
	})
	t.Cleanup(func() { cancel(); asking.Wait() })
	eventually(t, "the prompt has the terminal", func() bool {
		found, err := pinentry.OfAgent(agent)
		if err != nil || len(found) != 1 || !found[0].Uses(pinentry.DeviceOf(s.slave)) {
			return false
		}
		prompt = found[0]
		return true
	})
	t.Cleanup(func() { _ = prompt.End(context.Background()) })
	return agent, prompt
}

// While gpgconf fails, it is not known which process the agent is. What is typed at its prompt
// goes only to the prompt all the same; and the agent is found as soon as gpgconf works.
func TestGuardBeforeTheAgentIsFound(t *testing.T) {
	t.Parallel()
	s := newPromptSeat(t, "pinentry-tty")
	works := filepath.Join(t.TempDir(), "works")
	gpgconf := filepath.Join(t.TempDir(), "gpgconf")
	real, err := exec.LookPath("gpgconf")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(gpgconf, fmt.Appendf(nil, "#!/bin/sh\n[ -e %s ] && exec %s \"$@\"\nexit 1\n", works, real), 0o700))
	guard := s.guard(t, &agentside.Locator{Gpgconf: gpgconf})
	require.True(t, guard.IsFree())
	_, prompt := s.ask(t)
	eventually(t, "the terminal is the prompt's", func() bool { return !guard.IsFree() })
	require.NoError(t, os.WriteFile(works, nil, 0o600))
	eventually(t, "the agent is found", func() bool {
		guard.mu.Lock()
		defer guard.mu.Unlock()
		return guard.place == placeKnown
	})
	require.False(t, guard.IsFree())
	require.NoError(t, prompt.End(t.Context()))
	eventually(t, "the terminal is free again", guard.IsFree)
}

// It does not matter which of the user's agents asks. Another one than the session's may have
// been started since, by a program with another GNUPGHOME or after the socket directory had
// moved, whether or not the session's agent still runs.
func TestGuardOfAnotherAgent(t *testing.T) {
	t.Parallel()
	for _, goes := range []bool{false, true} {
		t.Run(fmt.Sprintf("the first one goes: %v", goes), func(t *testing.T) {
			t.Parallel()
			s := newPromptSeat(t, "pinentry-curses")
			guard := s.guard(t, &agentside.Locator{})
			eventually(t, "the agent is found", func() bool {
				guard.mu.Lock()
				defer guard.mu.Unlock()
				return guard.place == placeKnown
			})
			require.True(t, guard.IsFree())
			if goes {
				require.NoError(t, s.home.StopAgent(t.Context()))
			}
			other := *s
			other.home = gpghome.ForTest(t)
			link := filepath.Join(other.home.Dir(), "pinentry")
			require.NoError(t, os.Remove(link))
			require.NoError(t, os.Symlink(env.Tool(t, "pinentry-curses"), link))
			require.NoError(t, other.home.StartAgent(t.Context()))
			_, prompt := other.ask(t)
			eventually(t, "the terminal is the prompt's", func() bool { return !guard.IsFree() })
			require.NoError(t, prompt.End(t.Context()))
			eventually(t, "the terminal is free again", guard.IsFree)
		})
	}
}

// A pinentry whose agent was killed reads on, and keeps the terminal until it ends.
func TestGuardOfAPromptWhoseAgentWasKilled(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"pinentry-curses", "pinentry-tty"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := newPromptSeat(t, program)
			guard := s.guard(t, &agentside.Locator{})
			agent, prompt := s.ask(t)
			eventually(t, "the terminal is the prompt's", func() bool { return !guard.IsFree() })
			require.NoError(t, syscall.Kill(agent, syscall.SIGKILL))
			eventually(t, "the agent has ended", func() bool { _, err := pinentry.AgentOf(agent); return err != nil })
			for range 10 {
				require.False(t, guard.IsFree())
				time.Sleep(promptLook)
			}
			guard.End()
			_, runs := prompt.Rest()
			require.False(t, runs, "nobody would have its answer")
		})
	}
}

// A pinentry has the terminal no longer than it runs; and the guard does not end one whose
// agent still runs.
func TestGuardLetsGoWithThePrompt(t *testing.T) {
	t.Parallel()
	s := newPromptSeat(t, "pinentry-curses")
	first, second := s.guard(t, &agentside.Locator{}), s.guard(t, &agentside.Locator{})
	agent, prompt := s.ask(t)
	for _, guard := range []*Guard{first, second} {
		eventually(t, "the terminal is the prompt's", func() bool { return !guard.IsFree() })
	}
	first.End()
	rest, runs := prompt.Rest()
	require.True(t, runs)
	require.False(t, rest.Orphaned)
	require.NoError(t, syscall.Kill(agent, syscall.SIGKILL))
	eventually(t, "the agent has ended", func() bool { _, err := pinentry.AgentOf(agent); return err != nil })
	require.False(t, second.IsFree())
	require.NoError(t, prompt.End(t.Context()))
	eventually(t, "the terminal is free again", second.IsFree)
}

// An agent that has never said where it would ask may ask here: on a system that does not tell
// of prompts, an operation then has the terminal, too.
func TestGuardOfASilentAgent(t *testing.T) {
	t.Parallel()
	s := newPromptSeat(t, "pinentry-tty")
	_, err := s.home.AgentPID(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.home.SignalAgent(syscall.SIGSTOP))
	defer func() { _ = s.home.SignalAgent(syscall.SIGCONT) }()
	guard := s.guard(t, &agentside.Locator{})
	guard.mu.Lock()
	guard.find = func(pinentry.Agent) ([]pinentry.Process, error) { return nil, pinentry.ErrUnknown }
	guard.mu.Unlock()
	require.True(t, guard.IsFree())
	guard.Operating(1)
	require.False(t, guard.IsFree())
	guard.Operating(0)
	eventually(t, "the terminal is free again", guard.IsFree)
}
