package sshfwd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is a Prompter that answers from a list and remembers what it saw.
type script struct {
	mu      sync.Mutex
	answers []string
	asked   []string
	notices []string
	// when set, no answer comes until the context ends; started is closed then
	started chan struct{}
}

var errScriptOver = errors.New("the script has no more answers")

func (s *script) next(ctx context.Context, prompt string) (string, error) {
	s.mu.Lock()
	s.asked = append(s.asked, prompt)
	started := s.started
	if started == nil && len(s.answers) == 0 {
		s.mu.Unlock()
		return "", errScriptOver
	}
	if started == nil {
		answer := s.answers[0]
		s.answers = s.answers[1:]
		s.mu.Unlock()
		return answer, nil
	}
	s.mu.Unlock()
	close(started)
	<-ctx.Done()
	return "", ctx.Err()
}

func (s *script) AskSecret(ctx context.Context, prompt string) ([]byte, error) {
	answer, err := s.next(ctx, prompt)
	return []byte(answer), err
}

func (s *script) Ask(ctx context.Context, text string) (string, error) { return s.next(ctx, text) }

func (s *script) Confirm(ctx context.Context, question string) bool {
	answer, err := s.next(ctx, question)
	return err == nil && answer == "yes"
}

func (s *script) Notice(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = append(s.notices, text)
}

func (s *script) allAsked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, "|")
}

func (s *script) allNotices() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.notices, "|")
}

// dialContext bounds a connection that hangs.
func dialContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
