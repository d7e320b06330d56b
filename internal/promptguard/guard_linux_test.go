package promptguard

import (
	"fmt"
	"os"
	"path/filepath"
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

// guarded returns a terminal on which a real agent would ask, and its guard.
func guarded(t *testing.T) (*Guard, *os.File) {
	t.Helper()
	program := env.Tool(t, "pinentry-tty")
	master, slave, err := fakesshd.OpenPTY()
	require.NoError(t, err)
	home := gpghome.ForTest(t)
	link := filepath.Join(home.Dir(), "pinentry")
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(program, link))
	require.NoError(t, home.StartAgent(t.Context()))
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", slave.Fd()))
	require.NoError(t, err)
	_, _, err = home.Run(t.Context(), nil, "env", "GPG_TTY="+name, "gpg-connect-agent", "updatestartuptty", "/bye")
	require.NoError(t, err)
	guard := New(t.Context(), ui.New(slave, slave, slave), &agentside.Agent{Locator: &agentside.Locator{Env: home.Env()}})
	require.NotNil(t, guard)
	t.Cleanup(func() {
		guard.End()
		_ = slave.Close()
		_ = master.Close()
	})
	eventually(t, "the agent is found", func() bool {
		guard.mu.Lock()
		defer guard.mu.Unlock()
		return guard.place == placeKnown
	})
	return guard, slave
}

// If the system does not tell of the agent's prompts, an operation that may ask on the terminal
// has it, and no other operation.
func TestGuardOnASystemThatTellsNothing(t *testing.T) {
	t.Parallel()
	guard, slave := guarded(t)
	guard.mu.Lock()
	guard.find = func(pinentry.Agent) ([]pinentry.Process, error) { return nil, pinentry.ErrUnknown }
	guard.mu.Unlock()
	require.True(t, guard.IsFree())
	guard.Operating(1)
	require.False(t, guard.IsFree())
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = guard.Writer(slave).Write([]byte("x"))
	}()
	select {
	case <-written:
		require.Fail(t, "it was written")
	case <-time.After(5 * promptLook):
	}
	guard.Operating(0)
	<-written
	eventually(t, "the terminal is free again", guard.IsFree)

	guard.mu.Lock()
	guard.terminal++ // the agent would ask elsewhere
	guard.expected = expectation{}
	guard.mu.Unlock()
	guard.Operating(1)
	require.True(t, guard.IsFree())
}

// A pinentry that has asked here has the terminal until it ends, although it closes the
// terminal between two questions.
func TestGuardBetweenTwoQuestions(t *testing.T) {
	t.Parallel()
	guard, _ := guarded(t)
	set := func(prompts ...pinentry.Process) {
		guard.mu.Lock()
		defer guard.mu.Unlock()
		guard.find = func(pinentry.Agent) ([]pinentry.Process, error) { return prompts, nil }
	}
	set(pinentry.Process{PID: 7, DevicesKnown: true})
	require.True(t, guard.IsFree(), "it asks elsewhere, or not yet")
	set(pinentry.Process{PID: 7, DevicesKnown: true, Devices: []uint64{guard.terminal}})
	require.False(t, guard.IsFree())
	set(pinentry.Process{PID: 7, DevicesKnown: true})
	time.Sleep(3 * promptLook)
	require.False(t, guard.IsFree())
	set(pinentry.Process{PID: 8, DevicesKnown: true})
	eventually(t, "the terminal is free", guard.IsFree)
	set(pinentry.Process{PID: 8})
	require.False(t, guard.IsFree(), "it hides what it has open, and would ask here")
	set()
	eventually(t, "the terminal is free", guard.IsFree)
}

// The nil *Guard guards nothing.
func TestNoGuard(t *testing.T) {
	guard := New(t.Context(), ui.New(nil, nil, nil), nil)
	require.Nil(t, guard)
	guard.Operating(1)
	guard.LendFor(nil)
	guard.Await()
	guard.End()
	require.True(t, guard.IsFree())
}
