//go:build unix

package faults

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testenv"
)

// TestEveryFaultInEveryState plays each pair, and requires its outcome, that the
// neighbour does not notice, and in the end that nothing stays: no session, no
// descriptor; main_test.go looks for goroutines.
func TestEveryFaultInEveryState(t *testing.T) {
	all, err := cells()
	require.NoError(t, err)
	before := descriptors(t)
	t.Run("pairs", func(t *testing.T) {
		for _, c := range all {
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel() // they wait most of their time: see TestMain
				require.NoError(t, c.play(t, testenv.ShortDir(t)), "%q is what must come", c.want.word)
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

// play plays one pair.
func (c cell) play(t *testing.T, dir string) error {
	s, err := newStage(t, dir, c.state, c.fault)
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

// restIsWell requires that the neighbour completes a command, or has ended when
// its agent or its connection has.
func (s *stage) restIsWell(c cell) error {
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

// nothingStays ends the client, if it still is, and then the neighbour, and
// requires that there is no session, nor a connection to the agent.
func (s *stage) nothingStays() error {
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
