//go:build unix

package remoteside_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConversations plays the scripts in testdata/conversations through both
// machines, on Unix sockets: a script's client speaks to a Server, and its
// agent is one that agentside connects to, greeted and proved already. A script
// is played line by line, so an answer that is listed before the agent's OK has
// arrived before the agent said OK. The lines are:
//
//	client> LINE     the client sends LINE and an LF
//	client< LINE     the client receives LINE and an LF
//	agent< LINE      the agent receives LINE and an LF
//	agent> LINE      the agent sends LINE and an LF
//	client< EOF      the client's connection has ended, with nothing before it
//	agent< EOF       the agent's connection has ended, with nothing before it
//	agent< nothing   nothing has arrived at the agent
//	client ends      the client closes its sending half
//	client leaves    the client closes
//	agent leaves     the agent closes
//	ended CAUSE      the session has ended, with this cause, or in order if none
//	no agent         (first) nobody listens on the agent's socket
//	# …              a comment
//
// LINE may be a Go string in double quotes, which stands for these bytes, sent
// in one write and without an LF; parts are joined by +, and a part may be
// repeated: "D " + "x"*998.
func TestConversations(t *testing.T) {
	scripts, err := filepath.Glob("testdata/conversations/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			playScript(t, string(text))
		})
	}
}

func playScript(t *testing.T, script string) {
	stage := newStage(t, !strings.Contains(script, "\nno agent\n") && !strings.HasPrefix(script, "no agent\n"))
	last := ""
	for i, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		if line == "" || line[0] == '#' || line == "no agent" {
			continue
		}
		require.NoError(t, stage.play(line), "line %d: %s", i+1, line)
		last = line
	}
	require.True(t, strings.HasPrefix(last, "ended"), "the script does not say how the session ends")
}

// play does what one line of a script says.
func (s *stage) play(line string) error {
	switch line {
	case "client ends":
		return s.client.conn.CloseWrite()
	case "client leaves":
		return s.client.conn.Close()
	case "agent leaves":
		return s.agent.conn.Close()
	case "client< EOF":
		return s.client.receiveEOF()
	case "agent< EOF":
		return s.agent.receiveEOF()
	case "agent< nothing":
		return s.agent.receiveNothing()
	}
	if cause, ok := strings.CutPrefix(line, "ended"); ok {
		return s.ended(strings.TrimPrefix(cause, " "))
	}
	verb, text, _ := strings.Cut(line, " ")
	data, err := bytesOf(text)
	if err != nil {
		return err
	}
	switch verb {
	case "client>":
		return s.client.send(data)
	case "client<":
		return s.client.receive(data)
	case "agent>":
		return s.agent.send(data)
	case "agent<":
		return s.agent.receive(data)
	}
	return fmt.Errorf("no such line")
}

// bytesOf returns the bytes that a LINE stands for.
func bytesOf(text string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		return text + "\n", nil
	}
	var all strings.Builder
	for {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", err
		}
		part, _ := strconv.Unquote(quoted)
		text = text[len(quoted):]
		times := 1
		if repeat, ok := strings.CutPrefix(text, "*"); ok {
			number, rest, _ := strings.Cut(repeat, " ")
			if times, err = strconv.Atoi(number); err != nil {
				return "", err
			}
			text = strings.TrimSuffix(" "+rest, " ")
		}
		all.WriteString(strings.Repeat(part, times))
		if text == "" {
			return all.String(), nil
		}
		rest, ok := strings.CutPrefix(text, " + ")
		if !ok {
			return "", fmt.Errorf("%q is not + and a part", text)
		}
		text = rest
	}
}

// waitFor is how long a script waits for what must come: so long that a busy
// machine does not make a failure of it.
const waitFor = 30 * time.Second

// end is one end of the stage.
type end struct {
	conn *net.UnixConn
	in   *bufio.Reader
}

func newEnd(conn *net.UnixConn) *end { return &end{conn, bufio.NewReader(conn)} }

func (e *end) send(data string) error {
	_, err := io.WriteString(e.conn, data)
	return err
}

func (e *end) receive(want string) error {
	_ = e.conn.SetReadDeadline(time.Now().Add(waitFor))
	got := make([]byte, 0, len(want))
	for len(got) < len(want) { // as far as it is what it should be
		c, err := e.in.ReadByte()
		if err != nil {
			return fmt.Errorf("received %q, %w", got, err)
		}
		got = append(got, c)
		if c != want[len(got)-1] {
			rest, _ := e.in.Peek(e.in.Buffered())
			return fmt.Errorf("received %q", append(got, rest...))
		}
	}
	return nil
}

// receiveEOF takes a reset for an end: that is how a socket tells that it was
// closed with something in it that was not read.
func (e *end) receiveEOF() error {
	_ = e.conn.SetReadDeadline(time.Now().Add(waitFor))
	rest, err := io.ReadAll(e.in)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	if err != nil || len(rest) > 0 {
		return fmt.Errorf("received %q, %w", rest, err)
	}
	return nil
}

// receiveNothing gives what must not come some time to come.
func (e *end) receiveNothing() error {
	_ = e.conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	if _, err := e.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		rest, _ := e.in.Peek(e.in.Buffered())
		return fmt.Errorf("received %q, %w", rest, err)
	}
	return nil
}
