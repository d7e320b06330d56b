//go:build unix

package faults

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"time"

	"gpg-bridge/assuan"
)

// A situation is what a session can rest in: a state of each machine, and what
// brings it there. The machines are the session's, its agent's, and that of the
// repair between them (docs/states-*.md).
type situation struct {
	name                   string
	means                  string // for docs/faults.md
	request, agent, compat string

	sessions int // how many are served at once; 0 is the default
	backlog  int // the agent's; 0 is the default

	before func(s *stage) error // what is so when the client comes
	reach  func(s *stage) error // from the connection to the situation

	// lead is what the agent says until the client is served, and finish is
	// how the conversation then goes on to the end of a command.
	lead   func(s *stage) error
	finish func(s *stage) error
}

// situations are all there are; transient says why the other states of the
// machines are none.
var situations = []situation{
	{
		name: "queued", means: "more clients than may be served at once; this one waits ungreeted",
		request: "Disconnected", agent: "Disconnected", compat: "-",
		sessions: 1, lead: leaveNeighbour, finish: ask,
	}, {
		name: "dialling", means: "the agent's backlog is full",
		request: "ConnectingToAgent", agent: "ConnectingToAgent", compat: "-",
		backlog: 1, before: fillBacklog, reach: at("ConnectingToAgent"), lead: emptyBacklog, finish: ask,
	}, {
		name: "ungreeted", means: "the agent has accepted and not greeted",
		request: "ConnectingToAgent", agent: "WaitingForAgent", compat: "-",
		reach: steps(at("ConnectingToAgent"), acceptClient), lead: leadIn, finish: ask,
	}, {
		name: "unproved", means: "the agent has greeted and not said whether the connection is restricted",
		request: "ConnectingToAgent", agent: "WaitingForAgent", compat: "-",
		reach: steps(acceptClient, agentSays(greeting), agentHears("GETINFO restricted\n")), lead: agentSays("OK\n"), finish: ask,
	}, {
		name: "no agent", means: "none could be reached, and the client was greeted all the same",
		request: "Ready", agent: "Disconnected", compat: "-",
		before: dismissAgent, reach: steps(clientHears(greeting), at("Ready")), finish: askNobody,
	}, {
		name: "idle", means: "between two commands",
		request: "Ready", agent: "Ready", compat: "Passing",
		reach: steps(serve, at("Ready")), finish: ask,
	}, {
		name: "half a command", means: "a line has begun",
		request: "BufferingCommand", agent: "Ready", compat: "Passing",
		reach: steps(serve, clientSays("NO"), at("BufferingCommand")), finish: steps(clientSays("P\n"), agentHears("NOP\n"), answer("OK\n")),
	}, {
		name: "pending", means: "the agent works, or its pinentry is open",
		request: "WaitingForAgent", agent: "WaitingForAgent", compat: "Passing",
		reach: pending("PKSIGN\n"), finish: answer("OK\n"),
	}, {
		name: "pending, ahead", means: "and the client has sent more than 32 KiB of commands meanwhile",
		request: "WaitingForAgent", agent: "WaitingForAgent", compat: "Passing",
		reach:  steps(pending("PKSIGN\n"), clientSays(strings.Repeat(aheadCommand, aheadCommands))),
		finish: answerAll,
	}, {
		name: "inquiry", means: "the agent has asked back, and the client not begun to answer",
		request: "BufferingInquire", agent: "Ready", compat: "Passing",
		reach:  steps(pending("PKDECRYPT\n"), inquiry, at("BufferingInquire")),
		finish: steps(clientSays("D x\nEND\n"), agentHears("D x\nEND\n"), answer("OK\n")),
	}, {
		name: "half an answer", means: "the client has begun to answer",
		request: "BufferingInquire", agent: "SendingToAgent", compat: "Passing",
		reach:  steps(pending("PKDECRYPT\n"), inquiry, clientSays(longAnswer), agentHears(longAnswer[:1000])),
		finish: steps(clientSays("END\n"), agentHears(longAnswer[1000:]+"END\n"), answer("OK\n")),
	}, {
		name: "deaf agent", means: "the agent takes no more of a long answer",
		request: "BufferingInquire", agent: "SendingToAgent", compat: "Passing",
		reach:  steps(pending("PKDECRYPT\n"), inquiry, deafAgent),
		finish: steps(undeafAgent, answer("OK\n")),
	}, {
		name: "deaf client", means: "the client takes no more of a long response",
		request: "SendingToClient", agent: "WaitingForAgent", compat: "Passing",
		reach:  steps(pending("LEARN\n"), deafClient, at("SendingToClient")),
		finish: steps(undeafClient, answer("OK\n")),
	}, {
		name: "after BYE", means: "the agent has answered it and not yet closed",
		request: "Ready", agent: "Ready", compat: "Passing",
		reach:  steps(pending("BYE\n"), answer("OK closing connection\n"), at("Ready")),
		finish: func(s *stage) error { s.agent.close(); return s.client.ended(aSecond) },
	}, {
		name: "KEYINFO", means: "the agent has a KEYINFO, which it may not answer",
		request: "WaitingForAgent", agent: "WaitingForAgent", compat: "KeyinfoSent",
		reach:  pending("KEYINFO " + grip + "\n"),
		finish: refused(agentHears("HAVEKEY "+grip+"\n"), agentSays("OK\n"), clientHears("S KEYINFO "+grip), clientHearsOK),
	}, {
		name: "list", means: "the agent has a HAVEKEY --list, which it may not answer",
		request: "WaitingForAgent", agent: "WaitingForAgent", compat: "ListSent",
		reach: pending("HAVEKEY --list=1000\n"), finish: refused(nameGrip, confirmGrip),
	}, {
		name: "seeking a key", means: "the agent refused, and is asked HAVEKEY in its place",
		request: "WaitingForAgent", agent: "WaitingForAgent", compat: "SeekingKey",
		reach:  steps(pending("KEYINFO "+grip+"\n"), agentSays(forbidden), agentHears("HAVEKEY "+grip+"\n")),
		finish: steps(agentSays("OK\n"), clientHears("S KEYINFO "+grip), clientHearsOK),
	}, {
		name: "gathering", means: "the agent refused, and the local gpg is asked for its keys",
		request: "WaitingForAgent", agent: "Ready", compat: "Gathering",
		reach: steps(pending("HAVEKEY --list=1000\n"), agentSays(forbidden), asksForGrips), finish: steps(nameGrip, confirmGrip),
	}, {
		name: "seeking grips", means: "and the agent is asked for each of them",
		request: "WaitingForAgent", agent: "WaitingForAgent", compat: "SeekingGrips",
		reach: steps(pending("HAVEKEY --list=1000\n"), agentSays(forbidden), nameGrip, agentHears("HAVEKEY "+grip+"\n")), finish: steps(agentSays("OK\n"), clientHearsOK),
	},
}

// transient are the states that no session rests in, with the reason.
var transient = map[string]map[string]string{
	"request": {
		"SendingToAgent": "a command, or the end of an answer, fits the socket: the agent has taken all before it",
		"Error":          "left in the step that led there", "Closing": "left in the step that led there",
		"Fatal": "final: nothing is left to be released, or it cannot be",
	},
	"agent": {
		"SocketConnected": "left in the step that led there",
		"Error":           "left in the step that led there", "Closing": "left in the step that led there",
		"Fatal": "final: nothing is left to be released, or it cannot be",
	},
	"compat": {
		"Answering": "left when the client has taken the answer; one that does not is in SendingToClient",
		"Closed":    "final",
	},
}

const (
	grip      = "0123456789ABCDEF0123456789ABCDEF01234567"
	forbidden = "ERR 67109115 Forbidden <GPG Agent>\n"
)

// What a client says that runs ahead, and the beginning of an answer of which
// the machines pass on a part.
const (
	aheadCommand  = "NOP xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
	aheadCommands = 2 * assuan.BulkSize / len(aheadCommand)
)

var longAnswer = strings.Repeat("D "+strings.Repeat("x", 997)+"\n", 5)

func steps(each ...func(*stage) error) func(*stage) error {
	return func(s *stage) error {
		for _, step := range each {
			if err := step(s); err != nil {
				return err
			}
		}
		return nil
	}
}

func at(state string) func(*stage) error {
	return func(s *stage) error { return s.rests(state) }
}

func clientSays(text string) func(*stage) error {
	return func(s *stage) error { return s.client.send(text) }
}

func clientHears(text string) func(*stage) error {
	return func(s *stage) error { return s.client.receive(text) }
}

func clientHearsOK(s *stage) error {
	_, err := s.client.receiveUntil("OK\n")
	return err
}

func agentSays(text string) func(*stage) error {
	return func(s *stage) error { return s.say(text) }
}

func agentHears(text string) func(*stage) error {
	return func(s *stage) error { return s.agent.receive(text) }
}

// answer has the agent say what the client then hears.
func answer(text string) func(*stage) error {
	return func(s *stage) error {
		said := make(chan error, 1)
		go func() { said <- s.say(text) }()
		return errors.Join(s.hears(text), <-said)
	}
}

// answerAll answers the command, and then all that were sent ahead.
func answerAll(s *stage) error {
	if err := s.say("OK\n"); err != nil {
		return err
	}
	s.work.Go(func() { obeyed(s.agent) })
	return s.hears(strings.Repeat("OK\n", 1+aheadCommands))
}

// refused has the agent forbid what is repaired then, unless it says something
// else before: then it can answer, and what it says is passed on.
func refused(then ...func(*stage) error) func(*stage) error {
	return func(s *stage) error {
		if s.speech == behindAFlood {
			return answer(forbidden)(s)
		}
		return steps(append([]func(*stage) error{agentSays(forbidden)}, then...)...)(s)
	}
}

func acceptClient(s *stage) (err error) {
	s.agent, err = s.accept()
	return err
}

// leadIn is what an agent says before a session is anybody's.
func leadIn(s *stage) error {
	return steps(agentSays(greeting), agentHears("GETINFO restricted\n"), agentSays("OK\n"))(s)
}

// serve brings the client's session to its first command.
func serve(s *stage) error {
	s.greeted = true
	return steps(acceptClient, leadIn, clientHears(greeting))(s)
}

func pending(command string) func(*stage) error {
	return steps(serve, clientSays(command), agentHears(command), at("WaitingForAgent"))
}

// ask has a client complete a command that was not yet served.
func ask(s *stage) error {
	if !s.greeted {
		if err := s.client.receive(greeting); err != nil {
			return err
		}
	}
	return steps(clientSays("NOP\n"), agentHears("NOP\n"), answer("OK\n"))(s)
}

// askNobody is what a client is told where there is no agent.
func askNobody(s *stage) error {
	return steps(clientSays("NOP\n"), clientHears("ERR 67108941 No agent running <GPG Agent>\n"),
		func(s *stage) error { return s.client.ended(aSecond) })(s)
}

// leaveNeighbour makes room for one session, and leads it in.
func leaveNeighbour(s *stage) error {
	s.neighbour.close()
	return steps(acceptClient, leadIn)(s)
}

func fillBacklog(s *stage) error {
	for {
		c, err := net.Dial("unix", s.socket)
		if errors.Is(err, syscall.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		s.fillers = append(s.fillers, c)
	}
}

// emptyBacklog is an agent that can accept again.
func emptyBacklog(s *stage) error {
	for range s.fillers {
		filler, err := s.accept()
		if err != nil {
			return err
		}
		filler.close()
	}
	return steps(acceptClient, leadIn)(s)
}

// dismissAgent ends the agent, but for what the neighbour has of it.
func dismissAgent(s *stage) error { return s.agents.Close() }

func inquiry(s *stage) error { return answer("INQUIRE CIPHERTEXT\n")(s) }

func deafAgent(s *stage) error {
	s.agent.setDeaf(true)
	s.pour = s.client.pour(floodPiece)
	return s.pour.stuck()
}

func undeafAgent(s *stage) error {
	s.agent.setDeaf(false)
	s.pour.end()
	if err := s.client.send("END\n"); err != nil {
		return err
	}
	_, err := s.agent.receiveUntil("END\n")
	return err
}

func deafClient(s *stage) error {
	s.client.setDeaf(true)
	s.pour = s.agent.pour(floodPiece)
	return s.pour.stuck()
}

func undeafClient(s *stage) error {
	s.client.setDeaf(false)
	s.pour.end()
	return nil
}

// asksForGrips waits until the local side is asked, and lets it wait.
func asksForGrips(s *stage) error {
	select {
	case <-s.asked:
		return nil
	case <-time.After(patience):
		return errors.New("nobody asks for the keys")
	}
}

func nameGrip(s *stage) error {
	select {
	case s.grips <- []string{grip}:
		return nil
	case <-time.After(patience):
		return errors.New("nobody asks for the keys")
	}
}

func confirmGrip(s *stage) error {
	return steps(agentHears("HAVEKEY "+grip+"\n"), agentSays("OK\n"), clientHearsOK)(s)
}
