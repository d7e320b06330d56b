package agentside

import (
	"bytes"
	"regexp"
	"strings"
	"time"
)

// What the model says in the agent's place: the lines that libassuan and
// gpg-agent would have said (measured; the numbers are what counts).
const (
	sayNotImplemented = "ERR 67108933 Not implemented <GPG Agent>\n"
	sayNoAgent        = "ERR 67108941 No agent running <GPG Agent>\n"
	sayForbidden      = "ERR 67109115 Forbidden <GPG Agent>\n"
	sayUnexpected     = "ERR 67109138 Unexpected IPC command <GPG Agent>\n"
	sayUnknown        = "ERR 67109139 Unknown IPC command <GPG Agent>\n"
	saySyntax         = "ERR 67109140 IPC syntax error <GPG Agent>\n"
	sayLeadingSpace   = "ERR 67109140 IPC syntax error <GPG Agent> - leading white-space\n"
)

// forbidden is the guard's list a second time, from the design's section 4 and
// not from guard.go.
var forbidden = map[string]string{
	"INPUT": sayForbidden, "OUTPUT": sayForbidden, "SENDFD": sayUnknown, "RECVFD": sayUnknown,
	"PRESET_PASSPHRASE": sayForbidden, "CLEAR_PASSPHRASE": sayForbidden, "GET_PASSPHRASE": sayForbidden,
	"END": sayNotImplemented, "CAN": sayUnknown, "D": sayUnknown,
}

var (
	agentLine  = regexp.MustCompile(`^(?:(OK|ERR|INQUIRE)(?: |$)|(?:S|END)(?: |$)|D |#|$)`)
	dataAnswer = regexp.MustCompile(`^[Dd] (?s:.*)$`)
	goodData   = regexp.MustCompile(`^[Dd] (?s:[^%]|%[0-9A-Fa-f]{2})*$`)
	endAnswer  = regexp.MustCompile(`^(?:[Ee][Nn][Dd](?: (?s:.*))?$|[Cc][Aa][Nn])`)
)

// A model is the whole bridge for one client, as simple as it can be: no
// pumps, no locks, no clock of its own. It is fed with what both sides say,
// and knows what each of them hears.
type model struct {
	fromClient, fromAgent []byte // said, and not yet worked on
	clientRead, agentRead int    // bytes worked on

	steps    []string // what is still to be said before the agent is proved
	greeting string   // the agent's, "" before it came
	pending  bool     // the agent owes a response
	asked    bool     // it waits for the answer to its inquiry
	open     bool     // the client is served
	noAgent  bool     // in the agent's absence
	instead  string   // what the client gets for the agent's next OK or ERR
	begun    bool     // a part of a command is there
	farewell bool     // BYE was said
	silent   bool     // in the client's place
	deaf     bool     // writes to the client fail
	mute     bool     // writes to the agent fail
	rude     bool     // and so does the next line of an answer: its connection is closed
	left     bool     // the client's EOF was read
	since    time.Time
	dead     bool

	toClient, toAgent bytes.Buffer
}

// newModel is a bridge that has shown its credentials and waits to be greeted.
func newModel() *model {
	m := &model{pending: true, steps: []string{"GETINFO restricted\n", "OPTION pretend-request-origin=remote\n", "GETINFO restricted\n"}}
	m.toAgent.WriteString("nonce\n")
	return m
}

// agentSays takes one piece of the agent's.
func (m *model) agentSays(piece []byte) {
	if m.dead || m.noAgent {
		return
	}
	m.fromAgent = append(m.fromAgent, piece...)
	for !m.dead && !m.noAgent {
		line, rest, complete := bytes.Cut(m.fromAgent, []byte("\n"))
		if len(line) > 1000 {
			m.agentFails()
			return
		}
		if !complete {
			return
		}
		m.fromAgent = rest
		m.agentRead += len(line) + 1
		m.agentLine(string(line) + "\n")
		m.clientLines()
	}
}

// agentLine is one line of the agent's. One that nobody asked for is the end. So
// is a response behind which a line already is that nobody can have asked for;
// but that response still counts.
func (m *model) agentLine(raw string) {
	kind := agentLine.FindStringSubmatch(trimmed(raw))
	if kind == nil || !m.pending || m.asked {
		m.agentFails()
		return
	}
	if next, _, more := bytes.Cut(m.fromAgent, []byte("\n")); kind[1] != "" && more && len(next) <= 1000 {
		if m.open {
			m.respond(raw, kind[1])
		}
		m.mute, m.rude = true, true
		m.clientLines()
		m.agentFails()
		return
	}
	if !m.open {
		m.proof(raw, kind[1])
		return
	}
	m.respond(raw, kind[1])
}

// respond is a line of a response.
func (m *model) respond(raw, kind string) {
	if m.instead != "" && (kind == "OK" || kind == "ERR") {
		raw, m.instead = m.instead, ""
	}
	m.pending, m.asked = kind != "OK" && kind != "ERR", kind == "INQUIRE"
	m.tellClient(raw)
}

// proof is a line before the client is served: the greeting, or an answer to
// what proves that the connection is a restricted one.
func (m *model) proof(raw, kind string) {
	switch {
	case m.greeting == "" && kind == "OK":
		m.greeting = raw
		m.sayStep()
	case m.greeting == "" && trimmed(raw) != "" && raw[0] != '#':
		m.agentFails()
	case m.greeting == "" || kind == "":
	case kind == "OK" && len(m.steps) != 1:
		m.pending, m.open = false, true
		m.tellClient(m.greeting)
	default:
		m.sayStep()
	}
}

func (m *model) sayStep() {
	if len(m.steps) == 0 {
		m.agentFails()
		return
	}
	m.tellAgent(m.steps[0])
	m.steps = m.steps[1:]
}

// agentFails is the end, unless the client was not yet greeted: then it is told
// that there is no agent.
func (m *model) agentFails() {
	if m.open {
		m.dead = true
		return
	}
	m.noAgent, m.open, m.pending, m.asked = true, true, false, false
	m.tellClient("OK Pleased to meet you\n")
	m.clientLines()
}

// clientSays takes one piece of the client's.
func (m *model) clientSays(piece []byte) {
	m.fromClient = append(m.fromClient, piece...)
	m.clientLines()
}

// clientLines takes the client's lines for as long as they are its turn.
func (m *model) clientLines() {
	for !m.dead && m.open && (!m.pending || m.asked) && (!m.farewell || m.asked) {
		line, rest, complete := bytes.Cut(m.fromClient, []byte("\n"))
		if len(line) > 1000 {
			m.dead = true
			return
		}
		if !complete {
			m.partOfLine()
			return
		}
		m.fromClient = rest
		m.clientRead += len(line) + 1
		m.clientLine(string(line) + "\n")
	}
}

func (m *model) clientLine(raw string) {
	m.begun = false
	switch line := trimmed(raw); {
	case line == "" || line[0] == '#':
	case m.asked:
		m.answer(raw, line)
	default:
		m.command(raw, line)
	}
}

func (m *model) command(raw, line string) {
	verb := upper(strings.FieldsFunc(line+" ", func(r rune) bool { return r == ' ' || r == '\t' }))
	answer, refused := forbidden[verb]
	switch {
	case strings.Contains(line, "\x00"):
		m.tellClient(saySyntax)
	case line[0] == ' ' || line[0] == '\t':
		m.tellClient(sayLeadingSpace)
	case strings.HasPrefix(line, "D "):
		m.tellClient(sayNotImplemented)
	case refused:
		m.tellClient(answer)
	default:
		m.farewell = m.farewell || verb == "BYE"
		m.pending = true
		m.tellAgent(raw)
	}
}

// answer is a line inside an inquiry.
func (m *model) answer(raw, line string) {
	switch {
	case goodData.MatchString(line):
		m.tellAgent(raw)
		return
	case endAnswer.MatchString(line): // the agent may have asked anew after a CAN
		m.instead = ""
		m.tellAgent(raw)
	case dataAnswer.MatchString(line):
		m.instead = saySyntax
		m.tellAgent("CAN\n")
	default:
		m.instead = sayUnexpected
		m.tellAgent("CAN\n")
	}
	m.asked = false
}

// partOfLine is for a client that has not said a whole line. If that is all it
// ever says, BYE is said in its place; in the middle of something, as far as
// that was known when it left, it is the end.
func (m *model) partOfLine() {
	part := string(m.fromClient)
	switch {
	case !m.left:
		m.begun = m.begun || !m.asked && part != "" && part[0] != '#' && part != "\r"
	case m.asked, m.begun:
		m.dead = true
	default:
		m.silent, m.farewell, m.pending = true, true, true
		m.tellAgent("BYE\n")
	}
}

func (m *model) tellClient(line string) {
	if m.deaf && !m.silent {
		m.dead = true
	}
	if !m.silent && !m.dead {
		m.toClient.WriteString(line)
	}
}

// tellAgent writes a line. Where there is none, the first line is answered, and
// then it is over.
func (m *model) tellAgent(line string) {
	switch {
	case m.noAgent:
		m.tellClient(sayNoAgent)
		m.pending = false
		m.lastWords()
		m.dead = true
	case m.rude, m.mute && !dataAnswer.MatchString(trimmed(line)):
		m.agentFails()
	default:
		m.toAgent.WriteString(line)
	}
}

// lastWords are the guard's answers to what the client said behind the command
// that is answered already.
func (m *model) lastWords() {
	m.noAgent, m.mute = false, true
	m.clientLines()
	m.noAgent = true
}

func trimmed(raw string) string { return strings.TrimSuffix(strings.TrimSuffix(raw, "\n"), "\r") }

// upper is the first of the words in ASCII upper case.
func upper(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, words[0])
}
