package bridge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gpg-bridge/assuan"
	"gpg-bridge/remoteside"
)

// noPinentry is GPG_ERR_NO_PIN_ENTRY, without its source.
const noPinentry = 85

// A muteAgent is a conversation in which the agent may not ask. It calls refused when an
// operation fails for that.
type muteAgent struct {
	remoteside.Agent
	refused func()
	once    sync.Once
}

func (a *muteAgent) ReadLine() ([]byte, bool, error) {
	line, more, err := a.Agent.ReadLine()
	if err == nil && assuan.ErrorCode(line)&0xffff == noPinentry {
		a.once.Do(a.refused)
	}
	return line, more, err
}

// An askingAgent is a conversation in which the agent may ask its user. If that was decided
// too long ago, it is decided anew before each line after which a prompt may open: the use of
// a key, and the END of the data that the agent inquires for it (the ciphertext of
// PKDECRYPT). If a prompt would be misplaced now, the agent gets a line that does nothing
// instead, and the client the answer of a mute agent, although the agent might have needed no
// prompt: that cannot be known.
type askingAgent struct {
	remoteside.Agent
	local   *Local
	refused func(*PromptError)
	ctx     context.Context // for decisions; ends with Close
	cancel  context.CancelFunc
	decided time.Time   // owned by the writer
	instead atomic.Bool // the agent's next OK or ERR answers the line that does nothing
}

func newAskingAgent(ctx context.Context, agent remoteside.Agent, local *Local, decided time.Time, refused func(*PromptError)) *askingAgent {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &askingAgent{Agent: agent, local: local, refused: refused, ctx: ctx, cancel: cancel, decided: decided}
}

// WriteLine sends one line. If there is something to decide, that comes first, and takes no
// longer than promptPatience, or until Close.
func (a *askingAgent) WriteLine(line []byte) error {
	idle := mayPrompt(line)
	if idle == "" || time.Since(a.decided) < readerAge {
		return a.Agent.WriteLine(line)
	}
	decided := time.Now()
	if refusal := a.local.misplacedPrompt(a.ctx); refusal != nil {
		a.instead.Store(true)
		a.refused(refusal)
		return a.Agent.WriteLine([]byte(idle))
	}
	a.decided = decided
	return a.Agent.WriteLine(line)
}

// mayPrompt returns what to send instead of a line after which the agent may ask its user, or
// "" for other lines. There are no more of them: a restricted connection may not do anything
// else that needs a prompt (gnupg agent/command.c).
func mayPrompt(line []byte) (idle string) {
	c := assuan.ParseCommand(line)
	switch {
	case c.Is("PKSIGN"), c.Is("PKDECRYPT"):
		return "NOP\n"
	case assuan.AnswerOf(line) == assuan.AnswerEnd:
		return "CAN\n"
	}
	return ""
}

func (a *askingAgent) ReadLine() ([]byte, bool, error) {
	line, more, err := a.Agent.ReadLine()
	if err != nil || !a.instead.Load() {
		return line, more, err
	}
	if assuan.KindOf(line).Complete() {
		a.instead.Store(false)
		line = []byte(assuan.ErrNoPinentry)
	}
	return line, more, nil
}

// Close ends the conversation, and a decision that is under way.
func (a *askingAgent) Close() error {
	a.cancel()
	return a.Agent.Close()
}
