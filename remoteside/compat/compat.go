package compat

import (
	"context"
	"net"
	"sync"

	"gpg-bridge/assuan"
	"gpg-bridge/remoteside"
)

// maxKeygrips is the most keys in a list, as many as gpg asks for (gnupg
// g10/call-agent.c, "HAVEKEY --list=1000").
const maxKeygrips = 1000

// Keygrips returns the keygrips, 40 hex digits each, of all keys whose secret part
// the agent may have. If it cannot know all of them, it must return an error: gpg
// takes a list for complete and does not use a key that is not in it.
type Keygrips func(ctx context.Context) ([]string, error)

// New returns an agent that answers what gpg 2.3 and later need. Two of their
// questions may be refused on a restricted connection:
//
//   - KEYINFO <grip>, by a gpg-agent before 2.3.8. Without an answer gpg believes
//     that no subkey has a secret part, and fails, or signs with the primary key
//     where the user has a subkey for that.
//   - HAVEKEY --list[=n], by every agent. Without an answer gpg complains at every
//     run, and asks about each key by itself.
//
// If the agent refuses one of them, the answer is made from HAVEKEY <grip>, which every
// agent answers. If it answers by itself, that is passed on. HAVEKEY does not say how
// a key is kept. So the client is always told D and P, in a file and under a
// passphrase, where a newer agent would say C for a key in the clear, and T for one on
// a card.
//
// keygrips may be nil; then a refused list stays refused. It is called within
// ReadLine, and its context ends with Close.
func New(ctx context.Context, agent remoteside.Agent, keygrips Keygrips) remoteside.Agent {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &repair{Agent: agent, keygrips: keygrips, ctx: ctx, cancel: cancel}
}

// repair is the Agent between a session and its agent. As in a session, an action and
// the write that it makes are one step under mu, which is never held while the agent is
// read. Lock order: the session's mu, the repair's, the agent session's.
type repair struct {
	remoteside.Agent
	keygrips Keygrips
	ctx      context.Context // for keygrips; ends with Close
	cancel   context.CancelFunc

	mu    sync.Mutex
	state state
	cause error // why it was closed, if not by Close
	query query // the client's last

	// Owned by the goroutine that calls ReadLine; only its steps use them.
	refusal    []byte   // the agent's answer to the query
	candidates []string // the keygrips that the agent has still to be asked about
	confirmed  []byte   // the keygrips that the agent has, 20 bytes each
	answer     []byte   // what ReadLine has still to return of our answer
}

// WriteLine sends one of the client's lines.
func (c *repair) WriteLine(line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ev, query := classifyQuery(line)
	if ev != evClientLine {
		c.query = query
	}
	_, err := c.step(ev, line)
	return err
}

// ReadLine returns the agent's next line, or the next line of our own answer.
func (c *repair) ReadLine() (line []byte, more bool, err error) {
	for {
		if line := c.takeAnswer(); line != nil {
			return line, len(c.answer) > 0, nil
		}
		line, more, err := c.Agent.ReadLine()
		if pass, err := c.heard(line, err); pass || err != nil {
			return line, more, err
		}
	}
}

// Close ends the conversation. It interrupts whatever holds mu before it locks mu.
func (c *repair) Close() error {
	c.cancel()
	err := c.Agent.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.step(evCleanupRequested, nil)
	return err
}

// heard handles a line of the agent's, and reports whether the client gets it.
func (c *repair) heard(line []byte, err error) (pass bool, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		_, _ = c.step(c.fail(err), nil)
		return false, err
	}
	ev := evAgentLine
	if c.state != statePassing { // there every line passes
		ev = classifyAnswer(line)
	}
	return c.step(ev, line)
}

// takeAnswer returns the next line of our own answer, if there is one.
func (c *repair) takeAnswer() []byte {
	if len(c.answer) == 0 {
		return nil
	}
	line, rest := cutLine(c.answer)
	c.answer = rest
	if len(rest) == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = c.step(evAnswerTaken, nil)
	}
	return line
}

// step delivers one event, and then the events that the actions cause. It reports
// whether the line passes to the client, and returns the cause if the repair is
// closed. mu is held.
func (c *repair) step(ev event, line []byte) (pass bool, err error) {
	for ev != evNone {
		t := transitions[c.state][ev]
		if t.do == actViolation {
			ev = c.violated(ev)
			continue
		}
		c.state = t.next
		pass = t.do == actPass
		ev = c.act(t.do, line)
	}
	return pass, c.cause
}

// violated records a violation, unless it only comes from a Close in between.
func (c *repair) violated(ev event) event {
	if c.state == stateClosed {
		return c.fail(net.ErrClosed)
	}
	return c.fail(&remoteside.ViolationError{State: c.state.String(), Event: ev.String()})
}

func (c *repair) act(do action, line []byte) event {
	switch do {
	case actWrite:
		return c.write(line)
	case actAskKey:
		return c.refused(line, c.ask(string(c.query.grip[:])))
	case actGather:
		return c.refused(line, c.gather())
	case actAskGrip:
		return c.ask(c.candidates[0])
	case actConfirm:
		return c.confirm()
	case actDeny:
		return c.next()
	case actFound:
		return c.reply(keyinfoAnswer(c.query.grip))
	case actNotFound:
		return c.reply([]byte(errNotFound))
	case actList:
		return c.reply(listAnswer(c.confirmed, c.query.limit))
	case actRefuse:
		return c.reply(c.refusal)
	case actNone, actPass, actIgnore, actViolation, numActions:
	}
	return evNone
}

func (c *repair) write(line []byte) event {
	if err := c.Agent.WriteLine(line); err != nil {
		return c.fail(err)
	}
	return evNone
}

// refused keeps the agent's answer to the query, in case there will be no other.
func (c *repair) refused(line []byte, caused event) event {
	c.refusal = append(c.refusal[:0], line...)
	return caused
}

// ask asks the agent whether it has a key.
func (c *repair) ask(grip string) event {
	return c.write([]byte("HAVEKEY " + grip + "\n"))
}

// gather asks keygrips which keys there may be. If there are none, or the agent has none
// of them, the list is refused, as if they were not known: with an empty list, gpg would
// not try any key.
func (c *repair) gather() event {
	c.candidates, c.confirmed = nil, nil
	if c.keygrips == nil {
		return evGripsUnknown
	}
	grips, err := c.keygrips(c.ctx)
	if c.ctx.Err() != nil {
		return c.fail(net.ErrClosed)
	}
	if err != nil || len(grips) == 0 || len(grips) > maxKeygrips || !allKeygrips(grips) {
		return evGripsUnknown
	}
	c.candidates = grips
	return evGripNamed
}

func (c *repair) confirm() event {
	c.confirmed = appendGrip(c.confirmed, c.candidates[0])
	return c.next()
}

func (c *repair) next() event {
	c.candidates = c.candidates[1:]
	switch {
	case len(c.candidates) > 0:
		return evGripNamed
	case len(c.confirmed) == 0:
		return evGripsUnknown
	}
	return evGripsExhausted
}

// reply makes ReadLine return an answer of ours.
func (c *repair) reply(answer []byte) event {
	c.answer = answer
	return evNone
}

// fail records err as the cause, unless there is one, and returns the event that
// reports it.
func (c *repair) fail(err error) event {
	if c.cause == nil {
		c.cause = err
	}
	return evErrorOccurred
}

// classifyAnswer returns the event that one of the agent's lines is.
func classifyAnswer(line []byte) event {
	switch assuan.KindOf(line) {
	case assuan.KindOK:
		return evAgentOK
	case assuan.KindInquire:
		return evAgentInquire
	case assuan.KindERR:
	default:
		return evAgentLine
	}
	switch assuan.ErrorCode(line) {
	case codeForbidden:
		return evAgentForbidden
	case codeParameter:
		return evAgentUnknown
	case codeNoSecretKey:
		return evAgentNoKey
	}
	return evAgentERR
}
