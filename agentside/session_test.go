package agentside

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
)

func TestGreeting(t *testing.T) {
	for name, c := range map[string]struct {
		turns []turn
		want  string // of the error
	}{
		"plain":    {turns: []turn{turnGreet}},
		"comments": {turns: []turn{{"nonce\n", "# one\n\nOK Pleased"}, {"", " to meet you\n"}}},
		"refused":  {turns: []turn{{"nonce\n", "ERR 67109115 Forbidden\n"}}, want: `it said "ERR 67109115 Forbidden"`},
		"status":   {turns: []turn{{"nonce\n", "S x\n"}}, want: `it said "S x"`},
		"garbage":  {turns: []turn{{"nonce\n", "SSH-2.0-OpenSSH\r\n"}}, want: "not Assuan"},
		"too long": {turns: []turn{{"nonce\n", "OK " + strings.Repeat("x", 998)}}, want: "line too long"},
		"closed":   {turns: []turn{{"nonce\n", ""}, hangUp}, want: "unexpected EOF"},
		"half":     {turns: []turn{{"nonce\n", "OK Pl"}, hangUp}, want: "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := connect(t.Context(), &fakeEndpoint{conn: agentOf(t, c.turns...)}, noCheck)
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, "OK Pleased to meet you\n", string(s.Greeting()))
				require.Equal(t, stateReady, s.state)
				require.NotEmpty(t, s.ID().String())
				require.NoError(t, s.Close())
				return
			}
			var none *NoGreetingError
			require.ErrorAs(t, err, &none)
			require.Contains(t, none.Cause.Error(), c.want)
			require.NotEmpty(t, none.Hint())
		})
	}
}

// TestProve: nothing but OK to GETINFO restricted is a proof, and a main socket
// gets one chance to be turned.
func TestProve(t *testing.T) {
	pretend := func(answer string) turn { return turn{"OPTION pretend-request-origin=remote\n", answer} }
	for name, c := range map[string]struct {
		turns []turn
		want  error
	}{
		"extra socket":             {turns: []turn{turnRestricted}},
		"with status lines":        {turns: []turn{{"GETINFO restricted\n", "S x\n# y\nOK\n"}}},
		"main socket":              {turns: []turn{turnFree, pretend("OK\n"), turnRestricted}},
		"main socket, old agent":   {turns: []turn{turnFree, pretend("ERR 67109121 Unknown option\n"), turnFree}, want: ErrUnrestricted},
		"option ok, not effective": {turns: []turn{turnFree, pretend("OK\n"), turnFree}, want: ErrUnrestricted},
		"OK in data is no proof": {turns: []turn{
			{"GETINFO restricted\n", "D OK\nERR 1 x\n"}, pretend("OK\n"), {"GETINFO restricted\n", "D x\nD OK\nERR 1 x\n"},
		}, want: ErrUnrestricted},
		"an inquiry is no proof": {turns: []turn{
			{"GETINFO restricted\n", "INQUIRE OK\n"}, pretend("ERR 1 x\n"), turnFree,
		}, want: ErrUnrestricted},
		"closed": {turns: []turn{{"GETINFO restricted\n", ""}, hangUp}, want: io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			conn := agentOf(t, append([]turn{turnGreet}, c.turns...)...)
			s, err := connect(t.Context(), &fakeEndpoint{conn: conn}, prove)
			require.ErrorIs(t, err, c.want)
			if c.want == nil {
				require.NoError(t, s.Close())
			}
		})
	}
}

func TestSendCommands(t *testing.T) {
	s := readySession(t,
		turn{"GETINFO version\n", "D 2.4.8\nOK\n"},
		turn{"PKDECRYPT\n", "S INQUIRE_MAXLEN 4096\nINQUIRE CIPHERTEXT\n"},
		turn{"D OK\n", ""}, turn{"D END\n", ""}, turn{"END\n", "# c\nD ERR\nOK\n"},
		turn{"FOO\n", "ERR 67109139 Unknown IPC command\n"},
		turn{"BYE\n", "OK closing connection\n"}, hangUp)
	for _, c := range []struct{ block, want string }{
		{"GETINFO version\n", "D 2.4.8\nOK\n"},
		{"PKDECRYPT\n", "S INQUIRE_MAXLEN 4096\nINQUIRE CIPHERTEXT\n"},
		{"D OK\nD END\nEND\n", "# c\nD ERR\nOK\n"},
		{"FOO\n", "ERR 67109139 Unknown IPC command\n"},
	} {
		got, err := s.SendCommands([]byte(c.block))
		require.NoError(t, err)
		require.Equal(t, c.want, string(got))
	}
	require.NoError(t, s.Disconnect())
	require.NoError(t, s.Close(), "a second close")
	_, err := s.SendCommands([]byte("NOP\n"))
	require.ErrorIs(t, err, io.EOF)
}

// TestResponseLimits: a response of the limit is collected, a longer one ends
// the session.
func TestResponseLimits(t *testing.T) {
	data := "D " + strings.Repeat("x", 997) + "\n" // 1000 bytes
	s := readySession(t,
		turn{"ONE\n", strings.Repeat(data, maxResponse/1000) + "OK\n"},
		turn{"TWO\n", strings.Repeat(data, maxResponse/1000+1)}, hangUp)
	got, err := s.SendCommands([]byte("ONE\n"))
	require.NoError(t, err)
	require.Len(t, got, maxResponse/1000*1000+3)
	_, err = s.SendCommands([]byte("TWO\n"))
	require.ErrorIs(t, err, errResponseTooLong)
	require.Equal(t, stateDisconnected, s.state)
}

// TestCommandWhilePending: what the table does not allow ends the session.
func TestCommandWhilePending(t *testing.T) {
	s := readySession(t, turn{"NOP\n", ""})
	require.NoError(t, s.WriteLine([]byte("NOP\n")))
	err := s.WriteLine([]byte("NOP\n"))
	require.Equal(t, &ViolationError{State: "WaitingForAgent", Event: "ClientDataReceived"}, err)
	_, _, readErr := s.ReadLine()
	require.Equal(t, err, readErr, "the first cause")
}

// TestAgentSpeaks: what the agent says without being asked, or not in Assuan,
// ends the session, and when it leaves depends on whether it owed an answer.
func TestAgentSpeaks(t *testing.T) {
	for name, c := range map[string]struct {
		turns []turn
		want  string
	}{
		"garbage":            {[]turn{{"NOP\n", "OK\n"}, {"", "ok\n"}}, errInvalidResponse.Error()},
		"too long":           {[]turn{{"NOP\n", "OK\n" + strings.Repeat("x", 1001)}}, assuan.ErrLineTooLong.Error()},
		"left in order":      {[]turn{{"NOP\n", "OK\n"}, hangUp}, "EOF"},
		"left after inquiry": {[]turn{{"NOP\n", "INQUIRE x\n"}, hangUp}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s := readySession(t, c.turns...)
			_, err := s.SendCommands([]byte("NOP\n"))
			require.NoError(t, err)
			_, _, err = s.ReadLine()
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.want == "EOF", errors.Is(err, io.EOF))
			require.True(t, s.state.final())
		})
	}
	for _, unasked := range []string{"OK\nOK\n", "OK\nS x\n", "INQUIRE x\nok\n"} {
		s := readySession(t, turn{"NOP\n", unasked})
		got, err := s.SendCommands([]byte("NOP\n"))
		require.NoError(t, err, "that was in order")
		require.Equal(t, unasked[:strings.Index(unasked, "\n")+1], string(got))
		violation := &ViolationError{State: "Ready", Event: "AgentDataChunk"}
		require.Equal(t, violation, s.WriteLine([]byte("NOP\n")))
		_, _, err = s.ReadLine()
		require.Equal(t, violation, err)
	}
	s := readySession(t, turn{"NOP\n", "S x\n"}, hangUp)
	_, err := s.SendCommands([]byte("NOP\n"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// TestLinesAfterClose: a line that came before a close is not news after it.
func TestLinesAfterClose(t *testing.T) {
	s := readySession(t, turn{"NOP\n", "S 1\nS 2\nOK\n"})
	require.NoError(t, s.WriteLine([]byte("NOP\n")))
	line, more, err := s.ReadLine()
	require.NoError(t, err)
	require.Equal(t, "S 1\n", string(line))
	require.True(t, more)
	require.NoError(t, s.Close())
	_, _, err = s.ReadLine()
	require.Equal(t, io.EOF, err)
	require.NoError(t, s.cause)
}

// stuckConn is the connection to an agent that does not read.
type stuckConn struct {
	net.Conn
	stuck chan struct{} // closed by the first Write
}

func (c *stuckConn) Write(p []byte) (int, error) {
	close(c.stuck)
	return c.Conn.Write(p)
}

// TestCloseEndsStuckWrite: Close does not wait for who holds the session.
func TestCloseEndsStuckWrite(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	conn := &stuckConn{Conn: ours, stuck: make(chan struct{})}
	s := &Session{
		state: stateReady, conn: conn, closeConn: sync.OnceValue(conn.Close),
		out: bufio.NewWriterSize(conn, writeBuffer),
	}
	written := make(chan error)
	go func() { written <- s.WriteLine([]byte("NOP\n")) }()
	<-conn.stuck
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-written, io.ErrClosedPipe)
	require.Equal(t, stateDisconnected, s.state)
}
