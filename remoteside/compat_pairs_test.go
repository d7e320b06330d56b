package remoteside

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
)

const (
	gripA = "00000000000000000000000000000000000000AA"
	gripB = "00000000000000000000000000000000000000BB"

	errNoSecretKey = "ERR 67108881 No secret key <GPG Agent>\n"
	errParameter   = "ERR 67109144 IPC parameter error <GPG Agent> - invalid hexstring\n"
	errOther       = "ERR 67108922 Some other <GPG Agent>\n"

	foundA = "S KEYINFO " + gripA + " D - - - P - - -\nOK\n"
	list1  = "D \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xaa\nOK\n"
)

// compatLines is what makes each event happen that comes from a side.
var compatLines = map[compatEvent]string{
	cevClientLine:     "NOP\n",
	cevClientKeyinfo:  "KEYINFO " + gripA + "\n",
	cevClientList:     "HAVEKEY --list=1000\n",
	cevAgentLine:      "S x\n",
	cevAgentInquire:   "INQUIRE x\n",
	cevAgentOK:        "OK\n",
	cevAgentForbidden: assuan.ErrForbidden,
	cevAgentUnknown:   errParameter,
	cevAgentNoKey:     errNoSecretKey,
	cevAgentERR:       errOther,
}

// compatOutcome is what is left of a pair.
type compatOutcome struct {
	state  compatState
	agent  string // what was written to it
	client string // what the client gets
}

// compatPairs holds what must come of the pairs that are listed, but for an
// error and a close. In the state SeekingGrips the first of two keys is being
// asked about, in lastOfGrips the last, and in noneOfGrips the last where the
// agent had none before.
var compatPairs = map[compatState]map[compatEvent]compatOutcome{
	compatPassing: {
		cevClientLine:     {compatPassing, "NOP\n", ""},
		cevClientKeyinfo:  {compatKeyinfoSent, "KEYINFO " + gripA + "\n", ""},
		cevClientList:     {compatListSent, "HAVEKEY --list=1000\n", ""},
		cevAgentLine:      {compatPassing, "", "S x\n"},
		cevAgentInquire:   {compatPassing, "", "INQUIRE x\n"},
		cevAgentOK:        {compatPassing, "", "OK\n"},
		cevAgentForbidden: {compatPassing, "", assuan.ErrForbidden},
		cevAgentUnknown:   {compatPassing, "", errParameter},
		cevAgentNoKey:     {compatPassing, "", errNoSecretKey},
		cevAgentERR:       {compatPassing, "", errOther},
	},
	compatKeyinfoSent: {
		cevAgentLine:      {compatPassing, "", "S x\n"},
		cevAgentInquire:   {compatPassing, "", "INQUIRE x\n"},
		cevAgentOK:        {compatPassing, "", "OK\n"},
		cevAgentForbidden: {compatSeekingKey, "HAVEKEY " + gripA + "\n", ""},
		cevAgentUnknown:   {compatPassing, "", errParameter},
		cevAgentNoKey:     {compatPassing, "", errNoSecretKey},
		cevAgentERR:       {compatPassing, "", errOther},
	},
	compatListSent: {
		cevAgentLine:      {compatPassing, "", "S x\n"},
		cevAgentInquire:   {compatPassing, "", "INQUIRE x\n"},
		cevAgentOK:        {compatPassing, "", "OK\n"},
		cevAgentForbidden: {compatSeekingGrips, "HAVEKEY " + gripA + "\n", ""},
		cevAgentUnknown:   {compatSeekingGrips, "HAVEKEY " + gripA + "\n", ""},
		cevAgentNoKey:     {compatPassing, "", errNoSecretKey},
		cevAgentERR:       {compatPassing, "", errOther},
	},
	compatSeekingKey: {
		cevAgentLine:      {compatSeekingKey, "", ""},
		cevAgentOK:        {compatPassing, "", foundA},
		cevAgentForbidden: {compatPassing, "", assuan.ErrForbidden},
		cevAgentUnknown:   {compatPassing, "", assuan.ErrForbidden},
		cevAgentNoKey:     {compatPassing, "", errNotFound},
		cevAgentERR:       {compatPassing, "", assuan.ErrForbidden},
	},
	compatGathering: {
		cevGripNamed:    {compatSeekingGrips, "HAVEKEY " + gripA + "\n", ""},
		cevGripsUnknown: {compatPassing, "", assuan.ErrForbidden},
	},
	compatSeekingGrips: {
		cevAgentLine:      {compatSeekingGrips, "", ""},
		cevAgentOK:        {compatSeekingGrips, "HAVEKEY " + gripB + "\n", ""},
		cevAgentForbidden: {compatPassing, "", assuan.ErrForbidden},
		cevAgentUnknown:   {compatPassing, "", assuan.ErrForbidden},
		cevAgentNoKey:     {compatSeekingGrips, "HAVEKEY " + gripB + "\n", ""},
		cevAgentERR:       {compatPassing, "", assuan.ErrForbidden},
		cevGripNamed:      {compatSeekingGrips, "HAVEKEY " + gripA + "\n", ""},
		cevGripsExhausted: {compatPassing, "", "OK\n"}, // none was confirmed in this test
		cevGripsUnknown:   {compatPassing, "", assuan.ErrForbidden},
	},
	compatAnswering: {
		cevAnswerTaken: {compatPassing, "", ""},
	},
}

// compatIn returns a compat in a state, as the events before left it.
func compatIn(s compatState) (*compat, *fakeAgent) {
	agent := newFakeAgent()
	keys := func(context.Context) ([]string, error) { return []string{gripA, gripB}, nil }
	c := Compat(context.Background(), agent, keys).(*compat)
	c.state = s
	c.refusal = []byte(assuan.ErrForbidden)
	c.query = query{grip: [gripDigits]byte([]byte(gripA)), limit: 1000}
	c.candidates = []string{gripA, gripB}
	return c, agent
}

// TestCompatPairs walks every cell of the table: through ReadLine and WriteLine
// where the event has a line, else by a step.
func TestCompatPairs(t *testing.T) {
	for s := range numCompatStates {
		for e := range numCompatEvents {
			t.Run(s.String()+"/"+e.String(), func(t *testing.T) { checkCompatPair(t, s, e) })
		}
	}
}

func checkCompatPair(t *testing.T, s compatState, e compatEvent) {
	c, agent := compatIn(s)
	want, listed := compatPairs[s][e]
	over := e == cevErrorOccurred || e == cevCleanupRequested
	require.Equal(t, listed || over, compatTransitions[s][e].do != cactViolation, "the test and the table differ")

	client, err := deliver(c, agent, e)
	require.Equal(t, want.agent, agent.written())
	require.Equal(t, want.client, client)
	switch {
	case listed:
		require.NoError(t, err)
		require.Equal(t, want.state.String(), c.state.String())
		require.NoError(t, c.cause)
		return
	case e == cevErrorOccurred:
		require.ErrorIs(t, err, errTest)
	case e == cevCleanupRequested:
		require.NoError(t, err)
	case s == compatClosed:
		require.ErrorIs(t, err, net.ErrClosed)
	default:
		require.Equal(t, &ViolationError{State: s.String(), Event: e.String()}, err)
	}
	require.Equal(t, compatClosed, c.state)
}

// deliver makes an event happen and returns what the client got of it.
func deliver(c *compat, agent *fakeAgent, e compatEvent) (client string, err error) {
	switch line := compatLines[e]; {
	case e == cevCleanupRequested:
		return "", c.Close()
	case e == cevErrorOccurred:
		_, err = c.heard(nil, errTest)
		return "", err
	case e <= cevClientList:
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
func taken(c *compat) string {
	var all strings.Builder
	for line := c.takeAnswer(); line != nil; line = c.takeAnswer() {
		all.Write(line)
	}
	return all.String()
}

// TestCompatFailures: a write that fails closes it, wherever it is made.
func TestCompatFailures(t *testing.T) {
	for s, e := range map[compatState]compatEvent{
		compatPassing:      cevClientLine,
		compatKeyinfoSent:  cevAgentForbidden,
		compatListSent:     cevAgentUnknown,
		compatSeekingGrips: cevAgentNoKey,
	} {
		c, agent := compatIn(s)
		agent.writeErr = io.ErrClosedPipe
		_, err := deliver(c, agent, e)
		require.Equal(t, io.ErrClosedPipe, err, "%s", s)
		require.Equal(t, compatClosed, c.state)
		_, err = deliver(c, agent, cevAgentOK)
		require.Equal(t, io.ErrClosedPipe, err, "the first cause stays")
		require.NoError(t, c.Close())
		require.Equal(t, 1, agent.closes)
	}
}

// TestCompatList: what becomes of the keys that the local side names.
func TestCompatList(t *testing.T) {
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
		"unknown":         {keys: []string{gripA}, err: errTest, client: errParameter},
		"too many":        {keys: many, client: errParameter},
		"not a keygrip":   {keys: []string{gripA, gripA[1:] + "\n"}, client: errParameter},
		"a short keygrip": {keys: []string{gripA[2:]}, client: errParameter},
	} {
		t.Run(name, func(t *testing.T) {
			agent := newFakeAgent()
			repaired := Compat(t.Context(), agent, func(context.Context) ([]string, error) { return c.keys, c.err }).(*compat)
			if c.query == "" {
				c.query = "HAVEKEY --list=1000\n"
			}
			require.NoError(t, repaired.WriteLine([]byte(c.query)))
			_, err := repaired.heard([]byte(errParameter), nil)
			require.NoError(t, err)
			require.Equal(t, c.query, <-agent.heard)
			for i, has := range c.agent {
				require.Equal(t, "HAVEKEY "+c.keys[i]+"\n", <-agent.heard)
				says := map[rune]string{'y': "OK\n", 'n': errNoSecretKey}
				_, err := repaired.heard([]byte(says[has]), nil)
				require.NoError(t, err)
			}
			require.Equal(t, c.client, taken(repaired))
			require.Equal(t, compatPassing, repaired.state)
			require.Empty(t, agent.heard)
		})
	}
}

func TestClassifyQuery(t *testing.T) {
	for line, want := range map[string]compatEvent{
		"KEYINFO " + gripA + "\n":                     cevClientKeyinfo,
		"keyinfo\t" + strings.ToLower(gripA) + "\r\n": cevClientKeyinfo,
		"KEYINFO  " + gripA + " \n":                   cevClientKeyinfo,
		"HAVEKEY --list\n":                            cevClientList,
		"HaveKey --list=1\n":                          cevClientList,

		"KEYINFO\n":                             cevClientLine,
		"KEYINFO " + gripA + " " + gripB + "\n": cevClientLine,
		"KEYINFO --data " + gripA + "\n":        cevClientLine,
		"KEYINFO --list\n":                      cevClientLine,
		"KEYINFO " + gripA[1:] + "\n":           cevClientLine,
		"KEYINFO " + gripA[1:] + "G\n":          cevClientLine,
		"KEYINFOS " + gripA + "\n":              cevClientLine,
		"HAVEKEY\n":                             cevClientLine,
		"HAVEKEY " + gripA + "\n":               cevClientLine,
		"HAVEKEY --list=\n":                     cevClientLine,
		"HAVEKEY --list=0\n":                    cevClientLine,
		"HAVEKEY --list=-1\n":                   cevClientLine,
		"HAVEKEY --list=99999999999999999999\n": cevClientLine,
		"HAVEKEY --list 5\n":                    cevClientLine,
		"HAVEKEY --listing\n":                   cevClientLine,
		"HAVEKEY --info " + gripA + "\n":        cevClientLine,
		"":                                      cevClientLine,
		"\n":                                    cevClientLine,
		"NOP\n":                                 cevClientLine,
		"HELP\n":                                cevClientLine,
		"KILLAGENT\n":                           cevClientLine,
		"D KEYINFO " + gripA + "\n":             cevClientLine,
	} {
		got, q := classifyQuery([]byte(line))
		require.Equal(t, want.String(), got.String(), "%q", line)
		if want == cevClientKeyinfo {
			require.Equal(t, gripA, string(q.grip[:]))
		}
	}
}

// TestCompatCostsNothing: what needs no repair passes without an allocation.
func TestCompatCostsNothing(t *testing.T) {
	agent := &idleAgent{answer: []byte("OK\n")}
	c := Compat(t.Context(), agent, nil)
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

func (a *idleAgent) Greeting() []byte                { return []byte(testGreeting) }
func (a *idleAgent) WriteLine([]byte) error          { return nil }
func (a *idleAgent) ReadLine() ([]byte, bool, error) { return a.answer, false, nil }
func (a *idleAgent) Close() error                    { return nil }
