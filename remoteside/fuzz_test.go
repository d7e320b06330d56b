package remoteside

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
)

// FuzzSession gives a session what its pumps might read, in any order and cut
// anywhere. Its input is a list of readings, divided by |, and the first byte
// says of what:
//
//	cBYTES  the client sends these
//	aLINES  the agent sends these lines, which arrive together
//	C       the client leaves       E  the client's connection breaks
//	A       the agent leaves        B  the agent's connection breaks
//
// The model agent requires what must never reach an agent not to reach it; at
// the end all that the client got must have come from the agent or be an
// answer of ours; and when all of it happens once more after the end, nothing
// comes of it. agentside's FuzzConversation is the same for both machines, with
// their goroutines and in virtual time.
func FuzzSession(f *testing.F) {
	f.Add([]byte("cNOP\n|aOK|C"))
	f.Fuzz(func(t *testing.T, readings []byte) {
		x := newFuzzed(t)
		x.readAll(readings)
		x.end()
		x.clientOver, x.agentOver = false, false
		x.readAll(readings)
		x.requireUntouched()
	})
}

type fuzzed struct {
	t          *testing.T
	s          *session
	client     *recordConn
	agent      *modelAgent
	clientOver bool // its pump has returned
	agentOver  bool
	output     string // what the client had got at the end
}

func newFuzzed(t *testing.T) *fuzzed {
	x := &fuzzed{t: t, client: &recordConn{}, agent: &modelAgent{t: t}}
	x.s = newSession(x.client, Config{Connect: connectTo(x.agent)}, func(line []byte) { require.True(t, assuan.Ignorable(line)) })
	x.s.step(t.Context(), evClientSocketConnected, input{})
	require.Equal(t, stateReady, x.s.state)
	return x
}

func (x *fuzzed) readAll(readings []byte) {
	for reading := range bytes.SplitSeq(readings, []byte("|")) {
		if len(reading) > 0 {
			x.read(reading[0], reading[1:])
		}
	}
}

func (x *fuzzed) read(who byte, what []byte) {
	switch who {
	case 'c':
		x.clientSends(what)
	case 'C':
		x.fromClient(0, io.EOF)
	case 'E':
		x.fromClient(0, errTest)
	case 'a':
		x.agentSends(what)
	case 'A':
		x.fromAgent(nil, false, io.EOF)
	case 'B':
		x.fromAgent(nil, false, errTest)
	}
}

// clientSends delivers what there is room for; the rest would wait.
func (x *fuzzed) clientSends(data []byte) {
	for len(data) > 0 && !x.clientOver {
		n := copy(x.s.in.Space(), data)
		if n == 0 {
			return
		}
		data = data[n:]
		x.fromClient(n, nil)
	}
}

func (x *fuzzed) fromClient(n int, err error) {
	if x.clientOver {
		return
	}
	x.clientOver = !x.s.received(x.t.Context(), n, err)
	if x.s.linger != nil {
		x.s.linger.Stop() // lingerTime has its own tests
	}
	if err != nil {
		require.True(x.t, x.clientOver)
	}
	require.Equal(x.t, x.s.state.final(), x.agent.closes > 0)
}

// agentSends delivers lines that an Agent may return: those that are Assuan.
func (x *fuzzed) agentSends(data []byte) {
	var lines [][]byte
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if assuan.KindOf(line) != assuan.KindInvalid && len(line) <= assuan.MaxLine {
			lines = append(lines, append(bytes.Clone(line), '\n'))
		}
	}
	for i, line := range lines {
		x.fromAgent(line, i+1 < len(lines), nil)
	}
}

func (x *fuzzed) fromAgent(line []byte, more bool, err error) {
	if x.agentOver {
		return
	}
	allowed := err == nil && x.agent.says(line)
	x.agentOver = !x.s.answered(x.t.Context(), line, more, err)
	require.Equal(x.t, x.s.state.final(), x.agent.closes > 0)
	if !allowed {
		require.True(x.t, x.s.state.final(), "the session went on after %q, %v", line, err)
	}
}

// end breaks what is left, and looks back.
func (x *fuzzed) end() {
	ended := x.s.state.final()
	cause := x.s.cause
	x.s.lost(x.t.Context(), errTest)
	require.Equal(x.t, stateDisconnected, x.s.state)
	require.Equal(x.t, 1, x.client.Closes)
	require.Equal(x.t, 1, x.agent.closes)
	if ended {
		require.Equal(x.t, cause, x.s.cause)
	}
	before := x.client.String()
	x.s.drain(x.t.Context())
	require.Equal(x.t, before, x.client.String())
	x.output = before
	output, ok := strings.CutPrefix(before, fakeagent.Greeting)
	require.True(x.t, ok)
	requireExplained(x.t, output, x.agent.said)
}

// requireUntouched requires that nothing has happened since the end.
func (x *fuzzed) requireUntouched() {
	require.Equal(x.t, stateDisconnected, x.s.state)
	require.Equal(x.t, x.output, x.client.String())
	require.Equal(x.t, 1, x.client.Closes)
	require.Equal(x.t, 1, x.agent.closes)
}

// requireExplained requires every line of output to be the agent's next one, or
// an answer of ours, which may stand for the agent's OK or ERR.
func requireExplained(t *testing.T, output string, said []string) {
	at := map[int]bool{0: true} // how many of the agent's lines may be explained so far
	for line := range strings.Lines(output) {
		next := map[int]bool{}
		for i := range at {
			if i < len(said) && said[i] == line {
				next[i+1] = true
			}
			if !ownAnswer(line) {
				continue
			}
			next[i] = true
			if i < len(said) && (strings.HasPrefix(said[i], "OK") || strings.HasPrefix(said[i], "ERR")) {
				next[i+1] = true
			}
		}
		require.NotEmpty(t, next, "where does %q come from, in %q, where the agent said %q", line, output, said)
		at = next
	}
}

func ownAnswer(line string) bool {
	switch line {
	case assuan.ErrNotImplemented, assuan.ErrForbidden, assuan.ErrUnexpected, assuan.ErrUnknown, assuan.ErrSyntax, assuan.ErrLeadingSpace:
		return true
	}
	return false
}

// modelAgent is an agent that must not be harmed.
type modelAgent struct {
	t       *testing.T
	pending bool // it works on a command
	asked   bool // it waits for the answer to its inquiry
	closes  int
	said    []string
}

func (a *modelAgent) Greeting() []byte { return []byte(fakeagent.Greeting) }

func (a *modelAgent) ReadLine() ([]byte, bool, error) {
	return nil, false, errors.New("not in this test")
}

func (a *modelAgent) Close() error { a.closes++; return nil }

func (a *modelAgent) WriteLine(line []byte) error {
	require.Zero(a.t, a.closes, "%q after the end", line)
	require.Equal(a.t, 1, bytes.Count(line, []byte("\n")), "%q", line)
	require.True(a.t, bytes.HasSuffix(line, []byte("\n")))
	require.LessOrEqual(a.t, len(line)-1, assuan.MaxLine)
	require.False(a.t, assuan.Ignorable(line), "%q ends a pinentry", line)
	if a.asked {
		a.answered(line)
		return nil
	}
	require.False(a.t, a.pending, "%q while a command is pending", line)
	a.pending = true
	require.NotContains(a.t, string(line), "\x00")
	verb, _, _ := strings.Cut(strings.ReplaceAll(seen(line), "\t", " "), " ")
	require.NotContains(a.t, []string{
		"", "INPUT", "OUTPUT", "SENDFD", "RECVFD", "PRESET_PASSPHRASE", "CLEAR_PASSPHRASE", "GET_PASSPHRASE", "D", "END", "CAN",
	}, verb)
	return nil
}

// seen is the line as libassuan's comparisons see it.
func seen(line []byte) string {
	upper := func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}
	return strings.Map(upper, strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"))
}

// answered takes a line of the answer to an inquiry.
func (a *modelAgent) answered(line []byte) {
	upper := seen(line)
	if strings.HasPrefix(upper, "D ") {
		for _, after, found := strings.Cut(upper, "%"); found; _, after, found = strings.Cut(after, "%") {
			require.GreaterOrEqual(a.t, len(after), 2, "%q hangs the agent", line)
			require.NotContains(a.t, after[:2], "%")
		}
		return
	}
	require.True(a.t, strings.HasPrefix(upper, "CAN") || upper == "END" || strings.HasPrefix(upper, "END "), "%q", line)
	a.asked = false
}

// says reports whether the agent may say the line now, and what follows.
func (a *modelAgent) says(line []byte) bool {
	if a.closes > 0 || !a.pending || a.asked {
		return false
	}
	a.said = append(a.said, string(line))
	switch assuan.KindOf(line) {
	case assuan.KindOK, assuan.KindERR:
		a.pending = false
	case assuan.KindInquire:
		a.asked = true
	}
	return true
}
