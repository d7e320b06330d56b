package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// settleTimeout is how long the bridge may take to free the resources of ended sessions.
const settleTimeout = 20 * time.Second

// A serving is the process that runs serve.
type serving struct {
	cmd    *exec.Cmd
	stderr *strings.Builder

	mu        sync.Mutex // one question at a time
	questions io.WriteCloser
	answers   *json.Decoder
}

// startServing returns when the bridge of the new process serves.
func (l *lab) startServing(ctx context.Context, args []string) (*serving, error) {
	_ = os.Remove(l.socket)
	cmd := exec.CommandContext(ctx, args[0], append(args[1:], l.sshd.ConfigFile)...)
	s := &serving{cmd: cmd, stderr: &strings.Builder{}}
	cmd.Env, cmd.Stderr = append(l.laptop.Env(), "GORACE=atexit_sleep_ms=0"), s.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.questions, s.answers = stdin, json.NewDecoder(bufio.NewReader(stdout))
	var ready holding
	if err := s.answers.Decode(&ready); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

func (s *serving) ask(question string) (h holding, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err = io.WriteString(s.questions, question+"\n"); err == nil {
		err = s.answers.Decode(&h)
	}
	return h, err
}

// settled waits, for settleTimeout at most, until no session is left and no more of the other
// resources than want has. It returns the resources then, after a collection.
func (s *serving) settled(want holding) (holding, error) {
	deadline := time.Now().Add(settleTimeout)
	for {
		h, err := s.ask(askHeap)
		idle := h.Load == want.Load
		asBefore := want.Goroutines == 0 || h.Goroutines <= want.Goroutines && h.Descriptors <= want.Descriptors
		if err != nil || idle && asBefore || time.Now().After(deadline) {
			return h, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// end closes the bridge. If the bridge has printed anything, that is an error.
func (s *serving) end() error {
	_ = s.questions.Close()
	err := s.cmd.Wait()
	if err != nil || s.stderr.Len() > 0 {
		return fmt.Errorf("the bridge: %w: %s", errors.Join(err, errNoisy), s.stderr)
	}
	return nil
}

var errNoisy = errors.New("it complained")
