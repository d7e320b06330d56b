package compat

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
	"gpg-bridge/remoteside"
)

// errPlayed is what a fake is told to fail with.
var errPlayed = errors.New("test")

const (
	gripA = "00000000000000000000000000000000000000AA"
	gripB = "00000000000000000000000000000000000000BB"

	errNoSecretKey = "ERR 67108881 No secret key <GPG Agent>\n"
	errParameter   = "ERR 67109144 IPC parameter error <GPG Agent> - invalid hexstring\n"
	errOther       = "ERR 67108922 Some other <GPG Agent>\n"

	foundA = "S KEYINFO " + gripA + " D - - - P - - -\nOK\n"
	list1  = "D \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xaa\nOK\n"
)

// lineOf is a line for each event that a line causes.
var lineOf = map[event]string{
	evClientLine:     "NOP\n",
	evClientKeyinfo:  "KEYINFO " + gripA + "\n",
	evClientList:     "HAVEKEY --list=1000\n",
	evAgentLine:      "S x\n",
	evAgentInquire:   "INQUIRE x\n",
	evAgentOK:        "OK\n",
	evAgentForbidden: assuan.ErrForbidden,
	evAgentUnknown:   errParameter,
	evAgentNoKey:     errNoSecretKey,
	evAgentERR:       errOther,
}

// outcome is what is left of a pair.
type outcome struct {
	state  state
	agent  string // what was written to it
	client string // what the client gets
}

// pairs holds what must come of the pairs that are listed, but for an
// error and a close. In the state SeekingGrips the first of two keys is being
// asked about, in lastOfGrips the last, and in noneOfGrips the last where the
// agent had none before.
var pairs = map[state]map[event]outcome{
	statePassing: {
		evClientLine:     {statePassing, "NOP\n", ""},
		evClientKeyinfo:  {stateKeyinfoSent, "KEYINFO " + gripA + "\n", ""},
		evClientList:     {stateListSent, "HAVEKEY --list=1000\n", ""},
		evAgentLine:      {statePassing, "", "S x\n"},
		evAgentInquire:   {statePassing, "", "INQUIRE x\n"},
		evAgentOK:        {statePassing, "", "OK\n"},
		evAgentForbidden: {statePassing, "", assuan.ErrForbidden},
		evAgentUnknown:   {statePassing, "", errParameter},
		evAgentNoKey:     {statePassing, "", errNoSecretKey},
		evAgentERR:       {statePassing, "", errOther},
	},
	stateKeyinfoSent: {
		evAgentLine:      {statePassing, "", "S x\n"},
		evAgentInquire:   {statePassing, "", "INQUIRE x\n"},
		evAgentOK:        {statePassing, "", "OK\n"},
		evAgentForbidden: {stateSeekingKey, "HAVEKEY " + gripA + "\n", ""},
		evAgentUnknown:   {statePassing, "", errParameter},
		evAgentNoKey:     {statePassing, "", errNoSecretKey},
		evAgentERR:       {statePassing, "", errOther},
	},
	stateListSent: {
		evAgentLine:      {statePassing, "", "S x\n"},
		evAgentInquire:   {statePassing, "", "INQUIRE x\n"},
		evAgentOK:        {statePassing, "", "OK\n"},
		evAgentForbidden: {stateSeekingGrips, "HAVEKEY " + gripA + "\n", ""},
		evAgentUnknown:   {stateSeekingGrips, "HAVEKEY " + gripA + "\n", ""},
		evAgentNoKey:     {statePassing, "", errNoSecretKey},
		evAgentERR:       {statePassing, "", errOther},
	},
	stateSeekingKey: {
		evAgentLine:      {stateSeekingKey, "", ""},
		evAgentOK:        {statePassing, "", foundA},
		evAgentForbidden: {statePassing, "", assuan.ErrForbidden},
		evAgentUnknown:   {statePassing, "", assuan.ErrForbidden},
		evAgentNoKey:     {statePassing, "", errNotFound},
		evAgentERR:       {statePassing, "", assuan.ErrForbidden},
	},
	stateGathering: {
		evGripNamed:    {stateSeekingGrips, "HAVEKEY " + gripA + "\n", ""},
		evGripsUnknown: {statePassing, "", assuan.ErrForbidden},
	},
	stateSeekingGrips: {
		evAgentLine:      {stateSeekingGrips, "", ""},
		evAgentOK:        {stateSeekingGrips, "HAVEKEY " + gripB + "\n", ""},
		evAgentForbidden: {statePassing, "", assuan.ErrForbidden},
		evAgentUnknown:   {statePassing, "", assuan.ErrForbidden},
		evAgentNoKey:     {stateSeekingGrips, "HAVEKEY " + gripB + "\n", ""},
		evAgentERR:       {statePassing, "", assuan.ErrForbidden},
		evGripNamed:      {stateSeekingGrips, "HAVEKEY " + gripA + "\n", ""},
		evGripsExhausted: {statePassing, "", "OK\n"}, // none was confirmed in this test
		evGripsUnknown:   {statePassing, "", assuan.ErrForbidden},
	},
	stateAnswering: {
		evAnswerTaken: {statePassing, "", ""},
	},
}

// repairIn returns a repair in a state, as the events before it would have left it.
func repairIn(s state) (*repair, *fakeagent.Agent) {
	agent := fakeagent.New()
	keys := func(context.Context) ([]string, error) { return []string{gripA, gripB}, nil }
	c := New(context.Background(), agent, keys).(*repair)
	c.state = s
	c.refusal = []byte(assuan.ErrForbidden)
	c.query = query{grip: [assuan.KeygripDigits]byte([]byte(gripA)), limit: 1000}
	c.candidates = []string{gripA, gripB}
	return c, agent
}

// TestStepPairs walks every cell of the table: through ReadLine and WriteLine
// where the event has a line, else by a step.
func TestStepPairs(t *testing.T) {
	for s := range numStates {
		for e := range numEvents {
			t.Run(s.String()+"/"+e.String(), func(t *testing.T) { checkPair(t, s, e) })
		}
	}
}

func checkPair(t *testing.T, s state, e event) {
	c, agent := repairIn(s)
	want, listed := pairs[s][e]
	over := e == evErrorOccurred || e == evCleanupRequested
	require.Equal(t, listed || over, transitions[s][e].do != actViolation, "the test and the table differ")

	client, err := deliver(c, agent, e)
	require.Equal(t, want.agent, agent.Written())
	require.Equal(t, want.client, client)
	switch {
	case listed:
		require.NoError(t, err)
		require.Equal(t, want.state.String(), c.state.String())
		require.NoError(t, c.cause)
		return
	case e == evErrorOccurred:
		require.ErrorIs(t, err, errPlayed)
	case e == evCleanupRequested:
		require.NoError(t, err)
	case s == stateClosed:
		require.ErrorIs(t, err, net.ErrClosed)
	default:
		require.Equal(t, &remoteside.ViolationError{State: s.String(), Event: e.String()}, err)
	}
	require.Equal(t, stateClosed, c.state)
}

// deliver makes an event happen and returns what the client got of it.
func deliver(c *repair, agent *fakeagent.Agent, e event) (client string, err error) {
	switch line := lineOf[e]; {
	case e == evCleanupRequested:
		return "", c.Close()
	case e == evErrorOccurred:
		_, err = c.heard(nil, errPlayed)
		return "", err
	case e <= evClientList:
		return "", c.WriteLine([]byte(line))
	case line != "":
		pass, err := c.heard([]byte(line), nil)
		if pass {
			client = line
		}
		return client + taken(c), err
	}
	c.mu.Lock()
	_, err = c.step(e, nil)
	c.mu.Unlock()
	return taken(c), err
}

// taken is what there is of an answer of ours, taken as ReadLine takes it.
func taken(c *repair) string {
	var all strings.Builder
	for line := c.takeAnswer(); line != nil; line = c.takeAnswer() {
		all.Write(line)
	}
	return all.String()
}

// TestFailures: a write that fails closes it, wherever it is made.
func TestFailures(t *testing.T) {
	for s, e := range map[state]event{
		statePassing:      evClientLine,
		stateKeyinfoSent:  evAgentForbidden,
		stateListSent:     evAgentUnknown,
		stateSeekingGrips: evAgentNoKey,
	} {
		c, agent := repairIn(s)
		agent.WriteErr = io.ErrClosedPipe
		_, err := deliver(c, agent, e)
		require.Equal(t, io.ErrClosedPipe, err, "%s", s)
		require.Equal(t, stateClosed, c.state)
		_, err = deliver(c, agent, evAgentOK)
		require.Equal(t, io.ErrClosedPipe, err, "the first cause stays")
		require.NoError(t, c.Close())
		require.Equal(t, 1, agent.Closes)
	}
}

// TestList: what becomes of the keys that the local side names.
func TestList(t *testing.T) {
	many := make([]string, maxKeygrips+1)
	for i := range many {
		many[i] = gripA
	}
	for name, c := range map[string]struct {
		keys   []string
		err    error
		agent  string // what it says, one letter to each HAVEKEY: y, n
		query  string
		client string
	}{
		"all":             {keys: []string{gripA, gripB}, agent: "yy", client: "D " + strings.Repeat("\x00", 19) + "\xaa" + strings.Repeat("\x00", 19) + "\xbb\nOK\n"},
		"one":             {keys: []string{gripA, gripB}, agent: "yn", client: list1},
		"the other":       {keys: []string{gripB, gripA}, agent: "ny", client: list1},
		"exactly n":       {keys: []string{gripA}, agent: "y", query: "HAVEKEY --list=1\n", client: list1},
		"without n":       {keys: []string{gripA}, agent: "y", query: "havekey  --list \n", client: list1},
		"more than n":     {keys: []string{gripA, gripB}, agent: "yy", query: "HAVEKEY --list=1\n", client: strings.TrimSuffix(list1, "OK\n") + errTruncated},
		"none of them":    {keys: []string{gripA, gripB}, agent: "nn", client: errParameter},
		"none":            {client: errParameter},
		"unknown":         {keys: []string{gripA}, err: errPlayed, client: errParameter},
		"too many":        {keys: many, client: errParameter},
		"not a keygrip":   {keys: []string{gripA, gripA[1:] + "\n"}, client: errParameter},
		"a short keygrip": {keys: []string{gripA[2:]}, client: errParameter},
	} {
		t.Run(name, func(t *testing.T) {
			agent := fakeagent.New()
			repaired := New(t.Context(), agent, func(context.Context) ([]string, error) { return c.keys, c.err }).(*repair)
			if c.query == "" {
				c.query = "HAVEKEY --list=1000\n"
			}
			require.NoError(t, repaired.WriteLine([]byte(c.query)))
			_, err := repaired.heard([]byte(errParameter), nil)
			require.NoError(t, err)
			require.Equal(t, c.query, <-agent.Heard)
			for i, has := range c.agent {
				require.Equal(t, "HAVEKEY "+c.keys[i]+"\n", <-agent.Heard)
				says := map[rune]string{'y': "OK\n", 'n': errNoSecretKey}
				_, err := repaired.heard([]byte(says[has]), nil)
				require.NoError(t, err)
			}
			require.Equal(t, c.client, taken(repaired))
			require.Equal(t, statePassing, repaired.state)
			require.Empty(t, agent.Heard)
		})
	}
}

func TestClassifyQuery(t *testing.T) {
	for line, want := range map[string]event{
		"KEYINFO " + gripA + "\n":                     evClientKeyinfo,
		"keyinfo\t" + strings.ToLower(gripA) + "\r\n": evClientKeyinfo,
		"KEYINFO  " + gripA + " \n":                   evClientKeyinfo,
		"HAVEKEY --list\n":                            evClientList,
		"HaveKey --list=1\n":                          evClientList,

		"KEYINFO\n":                             evClientLine,
		"KEYINFO " + gripA + " " + gripB + "\n": evClientLine,
		"KEYINFO --data " + gripA + "\n":        evClientLine,
		"KEYINFO --list\n":                      evClientLine,
		"KEYINFO " + gripA[1:] + "\n":           evClientLine,
		"KEYINFO " + gripA[1:] + "G\n":          evClientLine,
		"KEYINFOS " + gripA + "\n":              evClientLine,
		"HAVEKEY\n":                             evClientLine,
		"HAVEKEY " + gripA + "\n":               evClientLine,
		"HAVEKEY --list=\n":                     evClientLine,
		"HAVEKEY --list=0\n":                    evClientLine,
		"HAVEKEY --list=-1\n":                   evClientLine,
		"HAVEKEY --list=99999999999999999999\n": evClientLine,
		"HAVEKEY --list 5\n":                    evClientLine,
		"HAVEKEY --listing\n":                   evClientLine,
		"HAVEKEY --info " + gripA + "\n":        evClientLine,
		"":                                      evClientLine,
		"\n":                                    evClientLine,
		"NOP\n":                                 evClientLine,
		"HELP\n":                                evClientLine,
		"KILLAGENT\n":                           evClientLine,
		"D KEYINFO " + gripA + "\n":             evClientLine,
	} {
		got, q := classifyQuery([]byte(line))
		require.Equal(t, want.String(), got.String(), "%q", line)
		if want == evClientKeyinfo {
			require.Equal(t, gripA, string(q.grip[:]))
		}
	}
}

// TestCostsNothing: what needs no repair passes without an allocation.
func TestCostsNothing(t *testing.T) {
	agent := &idleAgent{answer: []byte("OK\n")}
	c := New(t.Context(), agent, nil)
	lines := [][]byte{[]byte("NOP\n"), []byte("HAVEKEY " + gripA + "\n"), []byte("D " + strings.Repeat("x", 998) + "\n"), []byte("KILLAGENT\n")}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, line := range lines {
			if err := c.WriteLine(line); err != nil {
				panic(err)
			}
			if got, _, err := c.ReadLine(); err != nil || string(got) != "OK\n" {
				panic("not what the agent said")
			}
		}
	}))
	require.NoError(t, c.Close())
}

type idleAgent struct{ answer []byte }

func (a *idleAgent) Greeting() []byte                { return []byte(fakeagent.Greeting) }
func (a *idleAgent) WriteLine([]byte) error          { return nil }
func (a *idleAgent) ReadLine() ([]byte, bool, error) { return a.answer, false, nil }
func (a *idleAgent) Close() error                    { return nil }
