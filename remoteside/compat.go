package remoteside

import (
	"context"
	"net"
	"sync"

	"gpg-bridge/assuan"
)

// maxKeygrips bounds the keys that one list is made of: as many as gpg asks for
// (gnupg g10/call-agent.c, "HAVEKEY --list=1000").
const maxKeygrips = 1000

// Keygrips names the keys whose secret part the agent may have: keygrips, 40 hex
// digits each. It must name all of them or none: gpg takes a list for complete,
// and does without a key that is not in it. An error is for a log at most.
type Keygrips func(ctx context.Context) ([]string, error)

// Compat returns the agent as a gpg of version 2.3 or later needs it. Two things
// such a gpg asks for are refused on the restricted connection of an agent that
// is older:
//
//   - KEYINFO <grip>, before gpg-agent 2.3.8. Without it gpg believes that no
//     subkey has a secret part, and fails, or signs with the primary key where
//     the user has a subkey for that.
//   - HAVEKEY --list[=n], which no agent answers there. Without it gpg complains
//     at every run, and asks about each key by itself.
//
// Where the agent refuses them, HAVEKEY <grip> has the answer, which any agent
// gives. What the agent itself answers is passed on. HAVEKEY does not tell how a
// key is kept: the client is told D and P, in a file and under a passphrase,
// where a newer agent would say C of a key in the clear, and T of one on a card.
//
// keygrips may be nil; lists are then not repaired. It is called within
// ReadLine, and its context ends with Close.
func Compat(ctx context.Context, agent Agent, keygrips Keygrips) Agent {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &compat{Agent: agent, keygrips: keygrips, ctx: ctx, cancel: cancel}
}

// compat stands between a session and its agent. As in a session, an action and
// the write that it makes are one step under mu, which is never held while the
// agent is read. Lock order: a session's mu, a compat's, its agent session's.
type compat struct {
	Agent
	keygrips Keygrips
	ctx      context.Context // for keygrips; ends with Close
	cancel   context.CancelFunc

	mu    sync.Mutex
	state compatState
	cause error // why it was closed, if not by Close
	query query // what the client asked

	// Owned by the reader, as is all that its steps do.
	refusal    []byte // what the agent said to it
	candidates []string
	confirmed  []byte // the keygrips that the agent has, 20 bytes each
	answer     []byte // what the client has not yet taken of our answer
}

// WriteLine sends one line of the client's.
func (c *compat) WriteLine(line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ev, query := classifyQuery(line)
	if ev != cevClientLine {
		c.query = query
	}
	_, err := c.step(ev, line)
	return err
}

// ReadLine returns the agent's next line, or one of an answer in its place.
func (c *compat) ReadLine() (line []byte, more bool, err error) {
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

// Close ends the conversation. It breaks what may be under way first, and asks
// for mu then.
func (c *compat) Close() error {
	c.cancel()
	err := c.Agent.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.step(cevCleanupRequested, nil)
	return err
}

// heard takes what the agent said, and reports whether the client gets it.
func (c *compat) heard(line []byte, err error) (pass bool, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		_, _ = c.step(c.fail(err), nil)
		return false, err
	}
	ev := cevAgentLine
	if c.state != compatPassing { // where it makes no difference
		ev = classifyAnswer(line)
	}
	return c.step(ev, line)
}

// takeAnswer returns the next line of our own answer, if there is one.
func (c *compat) takeAnswer() []byte {
	if len(c.answer) == 0 {
		return nil
	}
	line, rest := cutLine(c.answer)
	c.answer = rest
	if len(rest) == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = c.step(cevAnswerTaken, nil)
	}
	return line
}

// step delivers one event and all those that its actions cause. It reports
// whether the line is the client's, and returns why there is nothing more to
// come. mu is held.
func (c *compat) step(ev compatEvent, line []byte) (pass bool, err error) {
	for ev != cevNone {
		t := compatTransitions[c.state][ev]
		if t.do == cactViolation {
			ev = c.violated(ev)
			continue
		}
		c.state = t.next
		pass = t.do == cactPass
		ev = c.act(t.do, line)
	}
	return pass, c.cause
}

// violated is a violation, unless Close came in between.
func (c *compat) violated(ev compatEvent) compatEvent {
	if c.state == compatClosed {
		return c.fail(net.ErrClosed)
	}
	return c.fail(&ViolationError{State: c.state.String(), Event: ev.String()})
}

func (c *compat) act(do compatAction, line []byte) compatEvent {
	switch do {
	case cactWrite:
		return c.write(line)
	case cactAskKey:
		return c.refused(line, c.ask(string(c.query.grip[:])))
	case cactGather:
		return c.refused(line, c.gather())
	case cactAskGrip:
		return c.ask(c.candidates[0])
	case cactConfirm:
		return c.confirm()
	case cactDeny:
		return c.next()
	case cactFound:
		return c.reply(keyinfoAnswer(c.query.grip))
	case cactNotFound:
		return c.reply([]byte(errNotFound))
	case cactList:
		return c.reply(listAnswer(c.confirmed, c.query.limit))
	case cactRefuse:
		return c.reply(c.refusal)
	case cactNone, cactPass, cactIgnore, cactViolation, numCompatActions:
	}
	return cevNone
}

func (c *compat) write(line []byte) compatEvent {
	if err := c.Agent.WriteLine(line); err != nil {
		return c.fail(err)
	}
	return cevNone
}

// refused keeps what the agent said to the client's command, for where it
// cannot be repaired after all.
func (c *compat) refused(line []byte, caused compatEvent) compatEvent {
	c.refusal = append(c.refusal[:0], line...)
	return caused
}

// ask asks the agent whether it has a key.
func (c *compat) ask(grip string) compatEvent {
	return c.write([]byte("HAVEKEY " + grip + "\n"))
}

// gather learns which keys there may be. That there are none, or that the agent
// has none of them, is as good as not to know: given an empty list gpg would
// look for no key any more.
func (c *compat) gather() compatEvent {
	c.candidates, c.confirmed = nil, nil
	if c.keygrips == nil {
		return cevGripsUnknown
	}
	grips, err := c.keygrips(c.ctx)
	if c.ctx.Err() != nil {
		return c.fail(net.ErrClosed)
	}
	if err != nil || len(grips) == 0 || len(grips) > maxKeygrips || !allKeygrips(grips) {
		return cevGripsUnknown
	}
	c.candidates = grips
	return cevGripNamed
}

func (c *compat) confirm() compatEvent {
	c.confirmed = appendGrip(c.confirmed, c.candidates[0])
	return c.next()
}

func (c *compat) next() compatEvent {
	c.candidates = c.candidates[1:]
	switch {
	case len(c.candidates) > 0:
		return cevGripNamed
	case len(c.confirmed) == 0:
		return cevGripsUnknown
	}
	return cevGripsExhausted
}

// reply gives the client an answer of ours; ReadLine takes it.
func (c *compat) reply(answer []byte) compatEvent {
	c.answer = answer
	return cevNone
}

// fail records the first cause and returns the event that tells of it.
func (c *compat) fail(err error) compatEvent {
	if c.cause == nil {
		c.cause = err
	}
	return cevErrorOccurred
}

// classifyAnswer tells what a line of the agent's means here.
func classifyAnswer(line []byte) compatEvent {
	switch assuan.KindOf(line) {
	case assuan.KindOK:
		return cevAgentOK
	case assuan.KindInquire:
		return cevAgentInquire
	case assuan.KindERR:
	default:
		return cevAgentLine
	}
	switch assuan.ErrorCode(line) {
	case codeForbidden:
		return cevAgentForbidden
	case codeParameter:
		return cevAgentUnknown
	case codeNoSecretKey:
		return cevAgentNoKey
	}
	return cevAgentERR
}
