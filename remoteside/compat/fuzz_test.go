package compat

import (
	"context"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
	"gpg-bridge/remoteside"
)

// FuzzRepair lets a client ask and an agent answer as the input says, byte by
// byte, and requires that the agent never has two commands, that it hears nothing
// but the client's lines and HAVEKEYs, and that the client gets one whole answer
// to each of its commands.
func FuzzRepair(f *testing.F) {
	f.Add([]byte{0, 2, 0, 1, 1, 2, 0, 0, 2, 3, 0, 0}, uint8(3))
	f.Add([]byte{1, 1, 0, 5, 3, 1, 4, 0, 4, 2, 1, 2, 1, 1, 0}, uint8(2))
	f.Fuzz(func(t *testing.T, script []byte, keys uint8) {
		agent := &scriptedAgent{t: t, script: script}
		c := New(t.Context(), agent, func(context.Context) ([]string, error) {
			grips := make([]string, keys%5)
			for i := range grips {
				grips[i] = gripB
			}
			return grips, nil
		})
		for len(agent.script) > 0 && !agent.asking {
			agent.client = pick(agent.take(), "NOP\n", "KEYINFO "+gripA+"\n", "HAVEKEY --list=2\n", "HAVEKEY "+gripB+"\n")
			require.NoError(t, c.WriteLine([]byte(agent.client)))
			readAnswer(t, c, agent)
		}
		require.NoError(t, c.Close())
	})
}

// readAnswer reads to the end of one answer, or to an inquiry or a violation,
// which are the end of this conversation.
func readAnswer(t *testing.T, c remoteside.Agent, agent *scriptedAgent) {
	for {
		line, _, err := c.ReadLine()
		if err != nil {
			var violation *remoteside.ViolationError
			require.ErrorAs(t, err, &violation)
			require.True(t, agent.asking, "only an inquiry is one")
			return
		}
		require.NotEqual(t, assuan.KindInvalid, assuan.KindOf(line))
		if assuan.KindOf(line).Final() {
			require.False(t, agent.pending && !agent.asking, "the agent still works")
			return
		}
	}
}

func pick(i byte, from ...string) string { return from[int(i)%len(from)] }

// scriptedAgent answers as the script says, each answer of at most one line more
// than its last.
type scriptedAgent struct {
	t       *testing.T
	script  []byte
	client  string // the client's command
	pending bool
	asking  bool
}

var ownHavekey = regexp.MustCompile(`^HAVEKEY [0-9A-F]{40}\n$`)

func (a *scriptedAgent) take() byte {
	if len(a.script) == 0 {
		return 0
	}
	first := a.script[0]
	a.script = a.script[1:]
	return first
}

func (a *scriptedAgent) Greeting() []byte { return []byte(fakeagent.Greeting) }
func (a *scriptedAgent) Close() error     { return nil }

func (a *scriptedAgent) WriteLine(line []byte) error {
	require.False(a.t, a.pending, "%q while a command is pending", line)
	if string(line) != a.client {
		require.Regexp(a.t, ownHavekey, string(line))
	}
	a.pending = true
	return nil
}

func (a *scriptedAgent) ReadLine() ([]byte, bool, error) {
	require.True(a.t, a.pending, "nobody asked")
	answer := pick(a.take(), "OK\n", assuan.ErrForbidden, errNoSecretKey, errParameter, errOther, "S x\n", "D x\n", "INQUIRE x\n")
	a.pending = !assuan.KindOf([]byte(answer)).Final()
	a.asking = answer == "INQUIRE x\n"
	return []byte(answer), false, nil
}
