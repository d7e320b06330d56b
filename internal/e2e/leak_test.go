package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestManySessionsLeaveNothing(t *testing.T) {
	s := stage{}.set(t)
	s.extraSocket(t)
	p := s.bridge(t)
	s.sign(t)
	path := s.socket(t)
	require.NoError(t, s.session(path, 0))
	p.settle(t)
	before := s.descriptors(t, p)

	for i := range 1000 {
		require.NoError(t, s.session(path, i))
	}
	var parallel sync.WaitGroup
	for i := range 100 {
		parallel.Go(func() { assert.NoError(t, s.session(path, i)) })
	}
	parallel.Wait()

	var after [2]int
	eventually(t, func() bool {
		after = s.descriptors(t, p)
		return after[0] <= before[0] && after[1] <= before[1]
	}, "descriptors before: %v, afterwards: %v", before, &after)
	s.sign(t)
	s.end(t, p)
}

// descriptors counts those of the program and those of the agent.
func (s *scene) descriptors(t testing.TB, p *process) [2]int {
	t.Helper()
	agent, err := s.laptop.AgentPID(t.Context())
	require.NoError(t, err)
	return [2]int{countFDs(t, p.cmd.Process.Pid, ""), countFDs(t, agent, "")}
}

// conversations are what a client says before it leaves; the first ends with
// the agent's leave. An answer is awaited for each line.
var conversations = [...][]string{
	{"GETINFO version\n", "BYE\n"},
	{"GETINFO version\n"},
	{},
	{"SETKEY KEYGRIP\n", "PKDECRYPT\n"},
}

// session has one of the conversations, and in every fifth leaves before it is
// greeted. It may be called from any goroutine.
func (s *scene) session(path string, i int) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	if i%5 == 4 {
		return nil
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	if err := answered(in); err != nil {
		return err
	}
	for _, line := range conversations[i%len(conversations)] {
		if _, err := io.WriteString(conn, strings.Replace(line, "KEYGRIP", s.key.SubKeygrip, 1)); err != nil {
			return err
		}
		if err := answered(in); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return nil
}

// answered reads up to an OK or an INQUIRE.
func answered(in *bufio.Reader) error {
	for {
		line, err := in.ReadString('\n')
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(line, "OK"), strings.HasPrefix(line, "INQUIRE"):
			return nil
		case strings.HasPrefix(line, "ERR"):
			return fmt.Errorf("the agent says %q", line)
		}
	}
}
