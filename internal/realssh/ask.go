package realssh

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"
)

// askTime is how long a candidate may take to answer.
const askTime = time.Second

// An answer is what is known of a candidate after it was asked.
type answer int

const (
	silent  answer = iota // it did not end in time
	another               // it is not this program
	ours
)

// A memory keeps the candidates' answers, by their paths, as long as their files stay the same.
type memory struct {
	mu      sync.Mutex
	answers map[string]remembered
}

type remembered struct {
	file   os.FileInfo
	answer answer
}

type memoryKey struct{}

// Remembering returns a context for everything that a process does, under which Find asks each
// script only once. Find is called in several packages that share nothing else, and a package
// variable would outlive a test.
func Remembering(ctx context.Context) context.Context {
	return context.WithValue(ctx, memoryKey{}, &memory{answers: map[string]remembered{}})
}

// ask asks a candidate, unless it has been asked.
func ask(ctx context.Context, path string) answer {
	m, ok := ctx.Value(memoryKey{}).(*memory)
	file, err := os.Stat(path)
	if !ok || err != nil {
		return askNow(ctx, path)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.answers[path]; ok && os.SameFile(known.file, file) && known.file.ModTime().Equal(file.ModTime()) {
		return known.answer
	}
	said := askNow(ctx, path)
	if ctx.Err() == nil {
		m.answers[path] = remembered{file, said}
	}
	return said
}

// askNow asks a candidate whether it is this program. What it has started ends with it, if it
// takes too long.
func askNow(ctx context.Context, path string) answer {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-V")
	cmd.Env = append(Without(os.Environ()), variable+"="+asked)
	cmd.WaitDelay = askTime / 10 // for what holds its stdout
	endTogether(cmd)
	said, err := cmd.Output()
	switch {
	case bytes.Contains(said, []byte(Answer)):
		return ours
	case ctx.Err() != nil, errors.Is(err, exec.ErrWaitDelay):
		return silent
	}
	return another
}
