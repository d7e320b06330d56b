package remoteside

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
)

// onlyKey is a rule by which a host may use one key.
func onlyKey(permitted string) Rule {
	return func(_ uuid.UUID, c assuan.Command) Ruling {
		named := c.Is("SIGKEY") || c.Is("SETKEY")
		if named && !strings.EqualFold(permitted, string(c.Keygrip())) {
			return Ruling{Answer: assuan.ErrForbidden}
		}
		return Ruling{}
	}
}

// namesHost is a rule by which a prompt says which host asks.
func namesHost(name string) Rule {
	return func(_ uuid.UUID, c assuan.Command) Ruling {
		if !c.Is("SETKEYDESC") {
			return Ruling{}
		}
		return Ruling{Rewritten: []byte("SETKEYDESC " + name + "+asks:%0A" + string(c.Args) + "\n")}
	}
}

// rewrites is a rule that has the agent get this line instead of a command.
func rewrites(name, line string) Rule {
	return func(_ uuid.UUID, c assuan.Command) Ruling {
		if c.Is(name) {
			return Ruling{Rewritten: []byte(line)}
		}
		return Ruling{}
	}
}

// permits is a rule that would let everything pass, and remembers what it was asked.
func permits(asked *[]string, by *uuid.UUID) Rule {
	return func(session uuid.UUID, c assuan.Command) Ruling {
		*by = session
		*asked = append(*asked, string(c.Line))
		return Ruling{}
	}
}

// TestRules: what the client says, and what the agent hears or the client is told.
func TestRules(t *testing.T) {
	const other = "1111111111111111111111111111111111111111"
	long := strings.Repeat("x", assuan.MaxLine)
	rules := []Rule{
		onlyKey(grip), namesHost("dev"), rewrites("ONE", "two x\n"), rewrites("TWO", "THREE x\r\n"),
		rewrites("LONG", "SETKEYDESC "+long+"\n"), rewrites("LONGEST", long+"\n"), rewrites("LINES", "NOP\nINPUT FD=3\n"),
		rewrites("OPEN", "NOP"), rewrites("NOTHING", ""), rewrites("EMPTY", "\r\n"), rewrites("COMMENT", "# NOP\n"),
		rewrites("HALF", "NOP \x00\n"), rewrites("DESCRIPTOR", "input FD=3\n"), rewrites("DATA", "D x\n"), rewrites("BYE", "NOP\n"),
	}
	for _, test := range []struct{ say, heard, told string }{
		{say: "SIGKEY " + grip + "\n", heard: "SIGKEY " + grip + "\n"},
		{say: "sigkey " + strings.ToUpper(grip) + "\r\n", heard: "sigkey " + strings.ToUpper(grip) + "\r\n"},
		{say: "SETKEY --another " + grip + "\n", heard: "SETKEY --another " + grip + "\n"},
		{say: "SIGKEY " + other + "\n", told: assuan.ErrForbidden},
		{say: "sigkey " + other + " " + grip + "\n", told: assuan.ErrForbidden},
		{say: "SETKEY --another " + other + "\n", told: assuan.ErrForbidden},
		{say: "SETKEY\n", told: assuan.ErrForbidden},
		{say: "HAVEKEY " + other + "\n", heard: "HAVEKEY " + other + "\n"},

		{say: "SETKEYDESC Please+enter%0A\n", heard: "SETKEYDESC dev+asks:%0APlease+enter%0A\n"},
		{say: "SetKeyDesc \t x\r\n", heard: "SETKEYDESC dev+asks:%0Ax\n"},
		{say: "SETKEYDESC " + long[:980] + "\n", told: assuan.ErrSyntax},

		{say: "ONE\n", heard: "THREE x\r\n"}, // each rule gets what the one before has made of it
		{say: "LONG\n", told: assuan.ErrSyntax},
		{say: "LONGEST\n", heard: long + "\n"},
		{say: "LINES\n", told: assuan.ErrSyntax},
		{say: "OPEN\n", told: assuan.ErrSyntax},
		{say: "NOTHING\n", told: assuan.ErrSyntax},
		{say: "EMPTY\n", told: assuan.ErrSyntax},
		{say: "COMMENT\n", told: assuan.ErrSyntax},
		{say: "HALF\n", told: assuan.ErrSyntax}, // the guard's answers
		{say: "DESCRIPTOR\n", told: assuan.ErrForbidden},
		{say: "DATA\n", told: assuan.ErrNotImplemented},

		{say: "BYE\n", heard: "BYE\n"},
	} {
		t.Run(strings.TrimSpace(test.say[:min(len(test.say), 30)]), func(t *testing.T) {
			agent := fakeagent.New()
			client, ended := serve(t, t.Context(), Config{Connect: connectTo(agent), Rules: rules})
			fakeagent.Receive(t, client, fakeagent.Greeting)
			fakeagent.Send(t, client, test.say)
			if test.told != "" {
				fakeagent.Receive(t, client, test.told)
				require.Empty(t, agent.Written())
			} else {
				require.Equal(t, test.heard, <-agent.Heard)
				agent.Say <- "OK\n"
				fakeagent.Receive(t, client, "OK\n")
			}
			close(agent.Gone)
			_ = client.Close()
			<-ended
		})
	}
}

// TestGuardComesFirst: no rule is asked about what the guard refuses, nor about an
// answer to an inquiry, nor about the BYE that we say for a client.
func TestGuardComesFirst(t *testing.T) {
	var asked []string
	var by uuid.UUID
	agent := fakeagent.New()
	client, ended := serve(t, t.Context(), Config{Connect: connectTo(agent), Rules: []Rule{permits(&asked, &by)}})
	fakeagent.Receive(t, client, fakeagent.Greeting)
	for say, want := range map[string]string{
		"GET_PASSPHRASE x\n": assuan.ErrForbidden, "NOP \x00\n": assuan.ErrSyntax, " NOP\n": assuan.ErrLeadingSpace, "END\n": assuan.ErrNotImplemented,
	} {
		fakeagent.Send(t, client, say)
		fakeagent.Receive(t, client, want)
	}
	fakeagent.Send(t, client, "# a comment\nPKDECRYPT\n")
	require.Equal(t, "PKDECRYPT\n", <-agent.Heard)
	agent.Say <- "INQUIRE CIPHERTEXT\n"
	fakeagent.Receive(t, client, "INQUIRE CIPHERTEXT\n")
	for _, say := range []string{"D x\n", "END\n"} {
		fakeagent.Send(t, client, say)
		require.Equal(t, say, <-agent.Heard)
	}
	agent.Say <- "OK\n"
	fakeagent.Receive(t, client, "OK\n")
	close(agent.Gone)
	require.NoError(t, client.Close())
	report := <-ended
	require.NoError(t, report.Cause)
	require.Equal(t, report.ID, by)
	require.Equal(t, []string{"PKDECRYPT\n"}, asked)
}

// TestOperationsAreTheAgents: what is told of a key's use is what the agent was given.
func TestOperationsAreTheAgents(t *testing.T) {
	w, agent := newWitness(), fakeagent.New()
	client, ended := serve(t, t.Context(), Config{
		Connect: connectTo(agent), Observers: []Observer{w}, Rules: []Rule{rewrites("FIRST", "SIGKEY "+grip+"\n"), rewrites("SECOND", "PKSIGN\n")},
	})
	fakeagent.Receive(t, client, fakeagent.Greeting)
	for _, say := range []string{"FIRST\n", "SECOND\n"} {
		fakeagent.Send(t, client, say)
		<-agent.Heard
		agent.Say <- "OK\n"
		fakeagent.Receive(t, client, "OK\n")
	}
	close(agent.Gone)
	require.NoError(t, client.Close())
	<-ended
	require.Len(t, w.operations, 1)
	require.Equal(t, grip, w.operations[0].Keygrip)
}

// TestRulesThatPassCostNothing: judging does not allocate.
func TestRulesThatPassCostNothing(t *testing.T) {
	ses, _, _ := sessionIn(stateReady)
	c := assuan.ParseCommand([]byte("SETHASH 8 00\n"))
	for _, rules := range [][]Rule{nil, {onlyKey(grip), namesHost("dev")}} {
		ses.rules = rules
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, answer := ses.judge(c); answer != "" {
				t.Error(answer)
			}
		}))
	}
}
