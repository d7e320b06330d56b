package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/bridge"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/config"
)

// A holding has the resources that a bridge's process uses at one moment.
type holding struct {
	bridge.Load
	Goroutines  int
	Descriptors int     // 0 where there is no /proc
	RSS         float64 // MB; 0 where there is no /proc
	Heap        float64 // MB in use; set only after a collection
}

// The questions to a serving process, one line each. It answers each with a holding.
const (
	askHolding = "holding"
	askHeap    = "heap" // the same, after a collection
)

// serve brings up a bridge to the `Host host` of an ssh_config, for the agent of this process's
// environment, and answers questions until in ends. When the bridge serves, it sends the first
// answer without a question.
func serve(ctx context.Context, file string, in io.Reader, out io.Writer) (err error) {
	resolved, err := config.Resolve(ctx, config.To("host", "-F", file).Batch())
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	client, err := sshfwd.Dial(ctx, resolved, sshfwd.DialOptions{Log: quiet})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	local := &bridge.Local{Agent: &agentside.Agent{Locator: &agentside.Locator{Env: os.Environ()}}, NoKeys: true}
	var warned warnings
	b, err := bridge.Start(ctx, client, local, local.Check(ctx), bridge.Options{Warn: warned.add, Log: quiet})
	if err != nil {
		return err
	}
	err = errors.Join(b.Verified(ctx), answer(b, in, out))
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return errors.Join(err, b.Close(ctx), warned.joined())
}

func answer(b *bridge.Bridge, in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	err := answers.Encode(hold(b, true))
	for questions := bufio.NewScanner(in); err == nil && questions.Scan(); {
		err = answers.Encode(hold(b, questions.Text() == askHeap))
	}
	return err
}

func hold(b *bridge.Bridge, collect bool) holding {
	h := holding{Load: b.Load(), Goroutines: runtime.NumGoroutine(), Descriptors: descriptors(), RSS: residentSet()}
	if collect {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		h.Heap = float64(stats.HeapAlloc) / 1e6
	}
	return h
}

func descriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// residentSet is the second field of proc(5)'s /proc/PID/statm, in MB.
func residentSet() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return float64(pages*os.Getpagesize()) / 1e6
}

// warnings are what the user would have been told.
type warnings struct {
	mu   sync.Mutex
	errs []error
}

func (w *warnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *warnings) joined() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.errs...)
}
