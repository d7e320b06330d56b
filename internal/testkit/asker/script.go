package asker

import (
	"context"
	"errors"
	"strings"
	"sync"

	"gpg-bridge/internal/usertext"
)

// A Script is a usertext.Asker that answers from a list and remembers what it saw.
type Script struct {
	mu      sync.Mutex
	Answers []string
	Asked   []string
	Notices []string
	// Started, where set, is closed when something is asked. Then no answer comes until the
	// context ends.
	Started chan struct{}
}

// ErrScriptOver is the error of a Script that has no more answers.
var ErrScriptOver = errors.New("the script has no more answers")

func (s *Script) next(ctx context.Context, prompt string) (string, error) {
	s.mu.Lock()
	s.Asked = append(s.Asked, prompt)
	started := s.Started
	if started == nil && len(s.Answers) == 0 {
		s.mu.Unlock()
		return "", ErrScriptOver
	}
	if started == nil {
		answer := s.Answers[0]
		s.Answers = s.Answers[1:]
		s.mu.Unlock()
		return answer, nil
	}
	s.mu.Unlock()
	close(started)
	<-ctx.Done()
	return "", ctx.Err()
}

// AskSecret gives the next answer.
func (s *Script) AskSecret(ctx context.Context, prompt string) ([]byte, error) {
	answer, err := s.next(ctx, prompt)
	return []byte(answer), err
}

// Ask gives the next answer.
func (s *Script) Ask(ctx context.Context, text string) (string, error) { return s.next(ctx, text) }

// Confirm reports whether the next answer is "yes".
func (s *Script) Confirm(ctx context.Context, question string) bool {
	answer, err := s.next(ctx, question)
	return err == nil && answer == "yes"
}

// Notice remembers the text.
func (s *Script) Notice(_ usertext.Level, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Notices = append(s.Notices, text)
}

// Banner remembers the text, too.
func (s *Script) Banner(text string) { s.Notice(usertext.Info, text) }

// AllAsked returns all questions, joined by |.
func (s *Script) AllAsked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.Asked, "|")
}

// AllNotices returns all texts that were shown, joined by |.
func (s *Script) AllNotices() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.Notices, "|")
}
