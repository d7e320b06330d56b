//go:build unix

package faults

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// TestEveryFaultInEveryState runs each pair, and requires its outcome, that the
// neighbour is not affected, and that nothing is left in the end: no session and no
// descriptor. main_test.go looks for goroutines.
func TestEveryFaultInEveryState(t *testing.T) {
	all, err := cells()
	require.NoError(t, err)
	warmed, err := net.Listen("tcp", "127.0.0.1:0") // the runtime's poller has descriptors of its own
	require.NoError(t, err)
	require.NoError(t, warmed.Close())
	before := descriptors(t)
	t.Run("pairs", func(t *testing.T) {
		for _, c := range all {
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel() // the pairs mostly wait: see TestMain
				require.NoError(t, c.play(t, env.ShortDir(t)), "%q is what must come", c.want.word)
			})
		}
	})
	require.Eventually(t, func() bool {
		runtime.GC() // io.Copy between two sockets leaves a pipe in a pool
		return descriptors(t) <= before
	}, patience, 100*time.Millisecond, "descriptors stay")
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	return len(entries)
}

// play runs one pair.
func (c cell) play(t *testing.T, dir string) error {
	s, err := newTestbed(t, dir, c.state, c.fault)
	if s != nil {
		defer s.end()
	}
	if err == nil && c.state.reach != nil {
		err = c.state.reach(s)
	}
	if err != nil {
		return fmt.Errorf("on the way to the state: %w", err)
	}
	if err := c.fault.inject(s); err != nil {
		return fmt.Errorf("the fault: %w", err)
	}
	if err := c.want.run(s, c.state); err != nil {
		return err
	}
	return errors.Join(s.restIsWell(c), s.nothingStays())
}

// restIsWell requires that the neighbour completes a command, or has ended if
// its agent or its connection has.
func (s *testbed) restIsWell(c cell) error {
	switch {
	case c.state.sessions == 1 && c.want.word != "closed": // it has left, to make room
		return nil
	case c.fault.shared && (s.front != nil || !c.fault.front):
		if err := s.neighbour.ended(aSecond); err != nil {
			return fmt.Errorf("the neighbour: %w", err)
		}
		return nil
	}
	if err := s.askNeighbour(); err != nil {
		return fmt.Errorf("the neighbour noticed: %w", err)
	}
	return nil
}

// nothingStays ends the client, if it is still there, and then the neighbour. It requires
// that no session and no connection to the agent is left.
func (s *testbed) nothingStays() error {
	s.client.close()
	if s.agent != nil {
		if err := s.agent.ended(aSecond); err != nil {
			return fmt.Errorf("the agent's connection: %w", err)
		}
	}
	s.neighbour.close()
	for deadline := time.Now().Add(patience); len(s.srv.Sessions()) > 0; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("sessions stay: %v", s.srv.Sessions())
		}
	}
	return nil
}
