package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
)

// What libassuan and gpg-agent answer; the numbers are those of libgpg-error.
const (
	notImplemented = "ERR 67108933 Not implemented <GPG Agent>\n"
	forbidden      = "ERR 67109115 Forbidden <GPG Agent>\n"
	unexpected     = "ERR 67109138 Unexpected IPC command <GPG Agent>\n"
	unknown        = "ERR 67109139 Unknown IPC command <GPG Agent>\n"
	syntax         = "ERR 67109140 IPC syntax error <GPG Agent>\n"
	cancelled      = "ERR 67109141 IPC call has been cancelled <GPG Agent>\n"
)

// An attack is a conversation that could harm an agent, or the user of it.
type attack struct {
	name string
	// inquiry: what is sent answers a real inquiry of the agent's, after which
	// a decryption of nonsense is to fail.
	inquiry bool
	sent    string
	want    string // all that is answered
	ends    bool   // and then the connection is closed
}

func attacks() []attack {
	long := strings.Repeat("x", 1100)
	list := []attack{
		{name: "escape without digits", inquiry: true, sent: "D abc%\n", want: syntax},
		{name: "escape with one digit", inquiry: true, sent: "D abc%4\n", want: syntax},
		{name: "escape that is no hex", inquiry: true, sent: "D abc%zz\n", want: syntax},
		{name: "broken escape after a good line", inquiry: true, sent: "D abc\nD %\n", want: syntax},
		{name: "broken escape in a small d line", inquiry: true, sent: "d abc%\n", want: syntax},
		{name: "command in an inquiry", inquiry: true, sent: "NOP\n", want: unexpected},
		{name: "BYE in an inquiry", inquiry: true, sent: "BYE\n", want: unexpected},
		{name: "cancelled inquiry", inquiry: true, sent: "can\n", want: cancelled},
		{name: "over-long data with a command in its tail", inquiry: true, sent: "D " + long + "GETINFO version\n", ends: true},
		{name: "over-long command", sent: "NOP " + long + "\n", ends: true},
		{name: "over-long command with a command in its tail", sent: long + "GETINFO version\n", ends: true},
		{name: "over-long comment", sent: "# " + long + "\n", ends: true},
		{name: "64 KiB without LF", sent: strings.Repeat("x", 64<<10), ends: true},
		{name: "NUL in a command", sent: "GETINFO version\x00x\n", want: syntax},
		{name: "NUL only", sent: "\x00\n", want: syntax},
		{name: "leave by the descriptors' door", sent: "INPUT FD=4\nRESET\n", want: forbidden + "OK\n"},
		{name: "close the log", sent: "output FD=3\nRESET\nBYE\n", want: forbidden + "OK\nOK closing connection\n", ends: true},
		{name: "INPUT without arguments", sent: "INPUT\n", want: forbidden},
		{name: "SENDFD", sent: "SENDFD 00\nrecvfd\n", want: unknown + unknown},
		{name: "data, END and CAN outside an inquiry", sent: "D x\nD\nd x\nEND\nCAN\n", want: notImplemented + unknown + unknown + notImplemented + unknown},
		{name: "pipelined", sent: "NOP\nGETINFO restricted\nGETINFO pid\nNOP\n", want: "OK\nOK\n" + forbidden + "OK\n"},
	}
	for _, verb := range []string{"GET_PASSPHRASE", "Get_Passphrase", "PRESET_PASSPHRASE", "preset_passphrase", "CLEAR_PASSPHRASE", "clear_passphrase"} {
		list = append(list, attack{name: verb, sent: verb + " --data X X X your+passphrase+please\n", want: forbidden})
	}
	return list
}

func TestHostileHost(t *testing.T) {
	s := stage{}.set(t)
	s.extraSocket(t)
	p := s.bridge(t)
	s.sign(t)
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			c := dial(t, s.socket(t))
			if a.inquiry {
				c.inquire(t, s.key.SubKeygrip)
			}
			_, _ = c.Write([]byte(a.sent)) // the reader may have closed before its end
			switch {
			case a.ends:
				require.Equal(t, a.want, c.rest(t))
			default:
				c.requireCodes(t, a.want)
				require.Equal(t, "OK\n", c.ask(t, "GETINFO restricted\n"), "the connection lives, and nothing is left over")
			}
			s.sign(t)
			s.requireIdle(t)
		})
	}
	s.end(t, p)
}

// requireCodes reads as many lines as there are in want, and compares the
// numbers: of an error that is the agent's own the text varies.
func (c *client) requireCodes(t testing.TB, want string) {
	t.Helper()
	for line := range strings.Lines(want) {
		got := c.line(t)
		wanted, given := strings.Fields(line), strings.Fields(got)
		require.Equal(t, wanted[:min(2, len(wanted))], given[:min(2, len(given))], "%q", got)
	}
}

// requireIdle measures what the agent does while nobody asks it anything: a
// rate needs a time.
func (s *scene) requireIdle(t testing.TB) {
	t.Helper()
	const window = 150 * time.Millisecond
	before, err := s.laptop.AgentCPU()
	require.NoError(t, err)
	time.Sleep(window)
	after, err := s.laptop.AgentCPU()
	require.NoError(t, err)
	require.Less(t, after-before, window/2)
}

// What the bridge answers in the agent's place is what the agent would have.
func TestAnswersAreLibassuans(t *testing.T) {
	s := stage{}.set(t)
	extra := s.extraSocket(t)
	p := s.bridge(t)
	for _, c := range []struct {
		inquiry bool
		sent    string
	}{
		{false, "D x\n"}, {false, "D\n"}, {false, "d x\n"}, {false, "END\n"}, {false, "CAN\n"},
		{false, "end\n"}, {false, "can\n"}, {false, "CANCEL\n"}, {false, "ENDX\n"},
		{false, "FROBNICATE\n"}, {false, "SENDFD 1\n"}, {false, "RECVFD\n"}, {false, "QUIT\n"}, {false, "AUTH\n"},
		{false, " NOP\n"}, {false, "\tNOP\n"}, {false, "\r\r\n"}, {false, "NOP\r\n"}, {false, "nop\n"},
		{false, "PRESET_PASSPHRASE x -1 00\n"}, {false, "CLEAR_PASSPHRASE x\n"},
		{false, "GENKEY\n"}, {false, "GETINFO pid\n"}, {false, "KILLAGENT\n"}, {false, "BYE\n"},
		{true, "NOP\n"}, {true, "RESET\n"}, {true, "BYE\n"}, {true, "D\n"}, {true, "ENDX\n"},
		{true, "CAN\n"}, {true, "cancel\n"}, {true, "END\n"}, {true, "end x\n"}, {true, "D x\nEND\n"},
		{true, "d x\nend\n"}, {true, "# a comment\n\nEND\n"},
	} {
		var answers [2]string
		for i, path := range []string{extra, s.socket(t)} {
			client := dial(t, path)
			if c.inquiry {
				client.inquire(t, s.key.SubKeygrip)
			}
			answers[i] = client.ask(t, c.sent)
			_ = client.Close()
		}
		require.Equal(t, answers[0], answers[1], "inquiry %v, %q", c.inquiry, c.sent)
	}
	s.end(t, p)
}

// A client that leaves while the human is asked takes its connection along:
// that is what ends the pinentry.
func TestClientLeavesDuringPinentry(t *testing.T) {
	s := stage{key: gpghome.KeySpec{Passphrase: "secret"}}.set(t)
	require.NoError(t, s.laptop.SetPinentry(gpghome.PinentryNever()))
	p := s.bridge(t)
	require.Contains(t, s.host.Run(t, "gpg --no-autostart --list-keys 2>&1"), userID)
	before := p.settle(t)

	gpg := s.host.Command("gpg", "--batch", "--no-tty", "-b", "-o", "-")
	gpg.Stdin = strings.NewReader("hello\n")
	require.NoError(t, gpg.Start())
	t.Cleanup(func() { _ = gpg.Process.Kill(); _ = gpg.Wait() })
	_, err := s.laptop.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	require.Equal(t, before+1, p.sockets(t), "the connection to the agent")

	require.NoError(t, gpg.Process.Kill())
	left := time.Now()
	require.NoError(t, within(time.Second, func() bool { return p.sockets(t) == before }))
	t.Logf("closed %v after the client had left", time.Since(left))
	s.end(t, p)
}

// The agent sees one command at a time: since 2.3.0 it takes any byte for the
// end of a client that waits for the human.
func TestPipelinedCommandWaits(t *testing.T) {
	s := stage{}.set(t)
	release := make(chan struct{})
	fake := startFake(t, func(line string) string {
		switch line {
		case "PKSIGN":
			<-release
			return "S PROGRESS x\nD signature\nOK\n"
		case "PKDECRYPT":
			return "INQUIRE CIPHERTEXT\n"
		case "D data":
			return ""
		}
		return "OK\n"
	})
	s.bridge(t, "--agent-socket", fake.path, "--allow-unrestricted")
	c := dial(t, s.socket(t))
	c.send(t, "PKSIGN\n\n# a comment\nNOP\nPKDECRYPT\nD data\nEND\nRESET\n")
	eventually(t, func() bool { return slices.Contains(fake.lines(), "PKSIGN") }, "no command arrived")

	// Another session is not held up, and by the time it is over what was sent
	// before it would have arrived.
	require.Equal(t, "OK\n", dial(t, s.socket(t)).ask(t, "HAVEKEY\n"))
	lines := fake.lines()
	require.NotContains(t, lines, "NOP")
	require.NotContains(t, lines, "")
	require.Equal(t, "PKSIGN", lines[len(lines)-2])
	close(release)
	require.Equal(t, "S PROGRESS x\nD signature\nOK\n", c.response(t))
	require.Equal(t, "OK\n", c.response(t))
	require.Equal(t, "INQUIRE CIPHERTEXT\n", c.response(t))
	require.Equal(t, "OK\n", c.response(t))
	require.Equal(t, "OK\n", c.response(t))
	lines = fake.lines()
	require.Equal(t, []string{"NOP", "PKDECRYPT", "D data", "END", "RESET"}, lines[len(lines)-5:])
}
