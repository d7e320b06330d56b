package promptguard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/pinentry"
)

// A second Ctrl-C ends the session if the prompt that the first one cancelled is still there,
// but not if there is a new prompt.
func TestPromptIsCancelledOnce(t *testing.T) {
	t.Parallel()
	guard, _ := guarded(t)
	set := func(err error, pids ...int) {
		guard.mu.Lock()
		defer guard.mu.Unlock()
		guard.find = func(pinentry.Agent) (prompts []pinentry.Process, _ error) {
			for _, pid := range pids {
				prompts = append(prompts, pinentry.Process{PID: pid, DevicesKnown: true, Devices: []uint64{guard.terminal}})
			}
			return prompts, err
		}
	}
	set(nil)
	require.False(t, guard.cancelPrompt(), "no prompt")
	set(nil, 7)
	require.True(t, guard.cancelPrompt())
	require.False(t, guard.cancelPrompt(), "it stays")
	set(nil, 8)
	require.True(t, guard.cancelPrompt(), "another prompt")
	require.False(t, guard.cancelPrompt())
	set(nil)
	eventually(t, "the terminal is free", guard.IsFree)

	set(pinentry.ErrUnknown)
	require.False(t, guard.cancelPrompt(), "no operation")
	guard.Operating(1)
	require.True(t, guard.cancelPrompt())
	require.False(t, guard.cancelPrompt())
	guard.Operating(0)
}
