package agentside

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// FuzzConversationCompat is FuzzConversation with the repair for older agents in between,
// where a client's command can become several of ours: still no byte before
// the proof, one command at a time, no refused one, nothing after the end, and
// to the client nothing but lines of an agent's. Its input is FuzzConversation's.
func FuzzConversationCompat(f *testing.F) {
	const grip = "0123456789ABCDEF0123456789ABCDEF01234567"
	f.Add([]byte("cKEYINFO " + grip + "\nHAVEKEY --list=1000\n|aERR 67109115 Forbidden <GPG Agent>\n|aOK\n|aERR 67109144 x\n|aOK\n|aERR 67108881 x\n|cBYE\n|aOK\n|A"))
	f.Add([]byte("chavekey --list\n|aERR 67109115 x\n|aERR 1 x\n|aERR 1 x\n"))
	f.Add([]byte("cHAVEKEY --list=1\n|aERR 67109115 x\n|aOK\n|C|aOK\n|T"))
	f.Add([]byte("cKEYINFO " + grip + "\n|aERR 67109115 x\n|aINQUIRE X\n|cEND\n"))
	f.Add([]byte("cKEYINFO --list\nKEYINFO " + grip + "\n|aS KEYINFO x\nOK\n|aD x\nERR 67109115 x\n|aS x\n|A"))
	f.Fuzz(func(t *testing.T, happenings []byte) {
		synctest.Test(t, func(t *testing.T) {
			x := newTalk(t)
			x.keygrips = func(context.Context) ([]string, error) {
				return []string{grip, strings.Repeat("AB", 20)}, nil
			}
			x.converse(happenings)
		})
	})
}

// A dialogue is what an agent of the model's knows of who speaks with it: how
// many commands it owes an answer to, and what it may not hear.
type dialogue struct {
	t       *testing.T
	unheard []byte // an incomplete line
	heard   int    // bytes of the wire's that were looked at
	owes    bool
	asked   bool
}

// says takes a line of the agent's.
func (d *dialogue) says(raw string) {
	kind := agentLine.FindStringSubmatch(trimmed(raw))
	if kind == nil || kind[1] == "" || !d.owes {
		return
	}
	d.owes, d.asked = kind[1] == "INQUIRE", kind[1] == "INQUIRE"
}

// hears takes what came since the last time.
func (d *dialogue) hears(wire []byte) {
	d.unheard = append(d.unheard, wire[d.heard:]...)
	d.heard = len(wire)
	for {
		raw, rest, complete := bytes.Cut(d.unheard, []byte("\n"))
		require.LessOrEqual(d.t, len(raw), 1000)
		if !complete {
			return
		}
		d.unheard = rest
		d.line(trimmed(string(raw) + "\n"))
	}
}

func (d *dialogue) line(line string) {
	switch {
	case d.asked && goodData.MatchString(line):
	case d.asked:
		require.Regexp(d.t, endAnswer, line)
		d.asked = false
	default:
		require.False(d.t, d.owes, "%q while a command is pending", line)
		require.NotRegexp(d.t, "^[ \t#]|^$|\x00", line)
		verb := upper(strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }))
		require.NotContains(d.t, forbidden, verb)
		d.owes = true
	}
}

// checkLoosely is check where more is said than the model knows of.
func (x *talk) checkLoosely() {
	synctest.Wait()
	closed := x.client.isOver()
	require.True(x.t, !closed || x.agent.isOver(), "the agent's connection stays")
	if closed {
		<-x.over
	}
	toClient, clientLate, _, _, _ := x.client.look()
	toAgent, agentLate, _, _, _ := x.agent.look()
	require.Empty(x.t, clientLate, "to the client after the end")
	require.Empty(x.t, agentLate, "to the agent after the end")
	proved, ok := bytes.CutPrefix(toAgent, []byte("nonce\nGETINFO restricted\n"))
	require.True(x.t, ok || len(toClient) == 0)
	if ok {
		x.d.hears(proved)
	}
	heard := string(toClient)
	require.True(x.t, heard == "" || strings.HasPrefix(heard, "OK"), "%q", heard)
	for line := range strings.Lines(heard) {
		require.Regexp(x.t, agentLine, trimmed(line))
		require.True(x.t, strings.HasSuffix(line, "\n"))
	}
}
