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

// A situation is one in which a session can rest: a state of each machine, and the steps
// that lead there. The machines are the session's, its agent's, and that of package compat
// between them (docs/states-*.md).
type situation struct {
	name                   string
	means                  string // for docs/faults.md
	request, agent, compat string

	sessions int // how many are served at once; 0 is the default
	backlog  int // the agent's; 0 is the default

	before func(s *testbed) error // before the client connects
	reach  func(s *testbed) error // from the connection to the situation

	// lead is what the agent says until the client is served, and finish is
	// how the conversation then goes on to the end of a command.
	lead   func(s *testbed) error
	finish func(s *testbed) error
}

// situations are all there are; transient says why the other states of the
// machines are none.
var situations = []situation{
	{
		name: "queued", means: "more clients than may be served at once; this one waits ungreeted",
		request: "Disconnected", agent: "Disconnected", compat: "-",
		sessions: 1, lead: leaveNeighbour, finish: ask,
	}, {
		name: "greeted", means: "the client has given no command, so the agent is not connected to",
		request: "Ready", agent: "Disconnected", compat: "-",
		reach: steps(hearGreeting, at("Ready")), finish: ask,
	}, {
		name: "dialling", means: "the client has given one, and the agent's backlog is full",
		request: "WaitingForAgent", agent: "ConnectingToAgent", compat: "-",
		backlog: 1, before: fillBacklog, reach: steps(command, at("WaitingForAgent")), lead: emptyBacklog, finish: ask,
	}, {
		name: "ungreeted", means: "the agent has accepted and not greeted",
		request: "WaitingForAgent", agent: "WaitingForAgent", compat: "-",
		reach: steps(command, acceptClient), lead: leadIn, finish: ask,
	}, {
		name: "unproved", means: "the agent has greeted and not said whether the connection is restricted",
		request: "WaitingForAgent", agent: "WaitingForAgent", compat: "-",
		reach: steps(command, acceptClient, agentSays(greeting), agentHears("GETINFO restricted\n")), lead: agentSays("OK\n"), finish: ask,
	}, {
		name: "no agent", means: "none can be reached, and the client was greeted all the same",
		request: "Ready", agent: "Disconnected", compat: "-",
		before: dismissAgent, reach: steps(hearGreeting, at("Ready")), finish: askNobody,
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
		finish: func(s *testbed) error { s.agent.close(); return s.client.ended(aSecond) },
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

// transient are the states in which no session rests, with the reason.
var transient = map[string]map[string]string{
	"request": {
		"SendingToAgent":    "a command, or the end of an answer, fits the socket: the agent has taken all before it",
		"ConnectingToAgent": "left in the step that led there: the agent is connected to at the first command",
		"Error":             "left in the step that led there", "Closing": "left in the step that led there",
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

// What a client sends that does not wait for answers, and the beginning of an answer of
// which the machines pass on a part.
const (
	aheadCommand  = "NOP xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
	aheadCommands = 2 * assuan.BulkSize / len(aheadCommand)
)

var longAnswer = strings.Repeat("D "+strings.Repeat("x", 997)+"\n", 5)

func steps(each ...func(*testbed) error) func(*testbed) error {
	return func(s *testbed) error {
		for _, step := range each {
			if err := step(s); err != nil {
				return err
			}
		}
		return nil
	}
}

func at(state string) func(*testbed) error {
	return func(s *testbed) error { return s.rests(state) }
}

func clientSays(text string) func(*testbed) error {
	return func(s *testbed) error { return s.client.send(text) }
}

func clientHears(text string) func(*testbed) error {
	return func(s *testbed) error { return s.client.receive(text) }
}

func clientHearsOK(s *testbed) error {
	_, err := s.client.receiveUntil("OK\n")
	return err
}

func agentSays(text string) func(*testbed) error {
	return func(s *testbed) error { return s.say(text) }
}

func agentHears(text string) func(*testbed) error {
	return func(s *testbed) error { return s.agent.receive(text) }
}

// answer has the agent say what the client then hears.
func answer(text string) func(*testbed) error {
	return func(s *testbed) error {
		said := make(chan error, 1)
		go func() { said <- s.say(text) }()
		return errors.Join(s.hears(text), <-said)
	}
}

// answerAll answers the command, and then all that were sent without waiting.
func answerAll(s *testbed) error {
	if err := s.say("OK\n"); err != nil {
		return err
	}
	s.work.Go(func() { obeyed(s.agent) })
	return s.hears(strings.Repeat("OK\n", 1+aheadCommands))
}

// refused has the agent forbid a command, which compat then answers, unless the agent sends
// something else first: then it can answer, and what it sends is passed on.
func refused(then ...func(*testbed) error) func(*testbed) error {
	return func(s *testbed) error {
		if s.speech == behindAFlood {
			return answer(forbidden)(s)
		}
		return steps(append([]func(*testbed) error{agentSays(forbidden)}, then...)...)(s)
	}
}

func acceptClient(s *testbed) (err error) {
	s.agent, err = s.accept()
	return err
}

// leadIn is what an agent says before a session is the client's.
func leadIn(s *testbed) error {
	return steps(agentSays(greeting), agentHears("GETINFO restricted\n"), agentSays("OK\n"))(s)
}

func hearGreeting(s *testbed) error {
	if s.greeted {
		return nil
	}
	s.greeted = true
	return s.client.receive(greeting)
}

// command has the client send a command, for which the session connects to the agent.
func command(s *testbed) error {
	if err := hearGreeting(s); err != nil || s.commanded {
		return err
	}
	s.commanded = true
	return s.client.send("NOP\n")
}

// answered has the agent, which has been proved, answer that command.
func answered(s *testbed) error {
	s.commanded = false
	return steps(agentHears("NOP\n"), answer("OK\n"))(s)
}

// serve brings the client's session to its second command.
func serve(s *testbed) error { return steps(command, acceptClient, leadIn, answered)(s) }

func pending(command string) func(*testbed) error {
	return steps(serve, clientSays(command), agentHears(command), at("WaitingForAgent"))
}

// ask has a client that was not served yet complete a command.
func ask(s *testbed) error {
	if s.agent == nil {
		return serve(s)
	}
	return steps(command, answered)(s)
}

// askNobody is what a client is told where there is no agent.
func askNobody(s *testbed) error {
	return steps(command, clientHears("ERR 67108941 No agent running <GPG Agent>\n"),
		func(s *testbed) error { return s.client.ended(aSecond) })(s)
}

// leaveNeighbour makes room for one session.
func leaveNeighbour(s *testbed) error {
	s.neighbour.close()
	return nil
}

func fillBacklog(s *testbed) error {
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
func emptyBacklog(s *testbed) error {
	for range s.fillers {
		filler, err := s.accept()
		if err != nil {
			return err
		}
		filler.close()
	}
	return steps(acceptClient, leadIn)(s)
}

// dismissAgent ends the agent, except for its connection to the neighbour.
func dismissAgent(s *testbed) error { return s.agents.Close() }

func inquiry(s *testbed) error { return answer("INQUIRE CIPHERTEXT\n")(s) }

func deafAgent(s *testbed) error {
	s.agent.setDeaf(true)
	s.pour = s.client.pour(floodPiece)
	return s.pour.stuck()
}

func undeafAgent(s *testbed) error {
	s.agent.setDeaf(false)
	s.pour.end()
	if err := s.client.send("END\n"); err != nil {
		return err
	}
	_, err := s.agent.receiveUntil("END\n")
	return err
}

func deafClient(s *testbed) error {
	s.client.setDeaf(true)
	s.pour = s.agent.pour(floodPiece)
	return s.pour.stuck()
}

func undeafClient(s *testbed) error {
	s.client.setDeaf(false)
	s.pour.end()
	return nil
}

// asksForGrips waits until the local side is asked, and lets it wait.
func asksForGrips(s *testbed) error {
	select {
	case <-s.asked:
		return nil
	case <-time.After(patience):
		return errors.New("nobody asks for the keys")
	}
}

func nameGrip(s *testbed) error {
	select {
	case s.grips <- []string{grip}:
		return nil
	case <-time.After(patience):
		return errors.New("nobody asks for the keys")
	}
}

func confirmGrip(s *testbed) error {
	return steps(agentHears("HAVEKEY "+grip+"\n"), agentSays("OK\n"), clientHearsOK)(s)
}
