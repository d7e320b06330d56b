package bridge

import (
	"context"
	"errors"
	"time"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/pinentry"
)

// promptAge is how long the agent's answer where it would ask is used, and readerAge how long
// a look at who reads there is used: in more time a user could type a command, or log in.
const (
	promptAge = time.Second
	readerAge = 50 * time.Millisecond
)

// promptCache remembers for a moment where the agent would ask, and who reads there: a thousand
// clients at once must not cause a thousand further conversations with the agent, nor as many
// looks at all processes. The zero value is ready.
type promptCache struct {
	turn turn // of whoever looks

	prompt      Prompt
	promptUntil time.Time // how long prompt is used
	found       *PromptError
	foundUntil  time.Time
}

// get returns why a prompt would be misplaced, or nil, and looks again if the last look is too
// old. Only one caller looks at a time; the others wait for it, no longer than ctx. An error
// says that it could not be found out, and is not remembered.
//
// The agent is asked only if some program reads a terminal: otherwise no prompt can be
// misplaced.
func (m *promptCache) get(ctx context.Context, ask func() (Prompt, error), readersOf func() ([]pinentry.Reader, error)) (*PromptError, error) {
	if err := m.turn.take(ctx); err != nil {
		return nil, err
	}
	defer m.turn.leave()
	if time.Now().Before(m.foundUntil) {
		return m.found, nil
	}
	readers, err := readersOf()
	if err != nil && !errors.Is(err, pinentry.ErrUnknown) { // ErrUnknown: the system never tells
		return nil, err
	}
	var found *PromptError
	if len(readers) > 0 {
		if err := m.askAgain(ask); err != nil {
			return nil, err
		}
		found = m.prompt.on(readers)
	}
	m.found, m.foundUntil = found, time.Now().Add(readerAge)
	return found, nil
}

// askAgain asks the agent, if its last answer is too old. If an agent does not answer in time,
// as after a suspend, its last answer is used as long as it is the same process.
func (m *promptCache) askAgain(ask func() (Prompt, error)) error {
	if time.Now().Before(m.promptUntil) {
		return nil
	}
	prompt, err := ask()
	if err != nil {
		_, gone := errors.AsType[*agentside.NoAgentError](err)
		if gone || m.prompt.lives == nil || !m.prompt.lives() {
			return err
		}
		prompt = m.prompt
	}
	m.prompt, m.promptUntil = prompt, time.Now().Add(promptAge)
	return nil
}
