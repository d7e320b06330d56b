package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
)

const (
	// patience ends a wait that would last for ever.
	patience = 30 * time.Second
	tick     = 5 * time.Millisecond
)

// output is what a process has written so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// A process is a running gpg-bridge. It is killed when the test ends, unless it
// has ended by then.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{} // closed when Wait has returned
	err            error         // of Wait; read after ended
}

// A result is how gpg-bridge ended.
type result struct {
	stdout, stderr string
	code           int // -1: by a signal
}

// launch starts gpg-bridge as the user of the laptop. stdin may be nil.
func launch(t testing.TB, laptop *gpghome.Home, stdin io.Reader, args ...string) *process {
	t.Helper()
	return launchAs(t, exec.Command(program, args...), laptop, stdin)
}

// launchAs starts a command that ends as gpg-bridge, with its own environment
// before the laptop's.
func launchAs(t testing.TB, cmd *exec.Cmd, laptop *gpghome.Home, stdin io.Reader) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &p.stdout, &p.stderr
	return p.launch(t, laptop)
}

// launchOn is launchAs at a terminal, where all output goes.
func launchOn(t testing.TB, cmd *exec.Cmd, laptop *gpghome.Home, terminal *os.File) *process {
	t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	p := &process{cmd: cmd, ended: make(chan struct{})}
	return p.launch(t, laptop)
}

func (p *process) launch(t testing.TB, laptop *gpghome.Home) *process {
	t.Helper()
	// The race detector sleeps for a second at the end, unless told otherwise.
	p.cmd.Env = slices.Concat(laptop.Env(), []string{"TERM=xterm", "GORACE=atexit_sleep_ms=0", "XDG_CACHE_HOME=" + filepath.Join(laptop.Dir(), "cache")}, p.cmd.Env)
	p.cmd.WaitDelay = 5 * time.Second // a child of its may hold the pipes
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.requireHealthy(t)
	})
	return p
}

// requireHealthy: no data race, no panic.
func (p *process) requireHealthy(t testing.TB) {
	t.Helper()
	for _, word := range []string{"DATA RACE", "panic:", "fatal error:"} {
		require.NotContains(t, p.stderr.String(), word)
	}
}

// signal sends a signal to the process.
func (p *process) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(sig))
}

// wait returns when the process has ended.
func (p *process) wait(t testing.TB) result {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGABRT) // for the goroutines
		<-p.ended
		t.Fatalf("gpg-bridge does not end\n%s", p.stderr.String())
	}
	require.NotErrorIs(t, p.err, exec.ErrWaitDelay, "a child of gpg-bridge outlives it")
	p.requireHealthy(t)
	return result{stdout: p.stdout.String(), stderr: p.stderr.String(), code: p.cmd.ProcessState.ExitCode()}
}

// waitFor waits until what the process wrote to one of its outputs holds text.
func (p *process) waitFor(t testing.TB, o *output, text string) {
	t.Helper()
	eventually(t, func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return strings.Contains(o.String(), text)
		}
	}, "no %q from gpg-bridge", text)
	require.Contains(t, o.String(), text, "stderr: %s", p.stderr.String())
}

// sockets counts the sockets that the process has open.
func (p *process) sockets(t testing.TB) int {
	t.Helper()
	return countFDs(t, p.cmd.Process.Pid, "socket:")
}

// settle waits until the bridge has no conversation with the agent any more,
// such as the one that verified the path, and returns how many sockets are left:
// the connection to the host, unless a ProxyCommand has it, and that on which
// others ask how it does.
func (p *process) settle(t testing.TB) int {
	t.Helper()
	own := 2
	if slices.ContainsFunc(p.cmd.Args, func(arg string) bool { return strings.HasPrefix(arg, "ProxyCommand=") }) {
		own = 1
	}
	eventually(t, func() bool { return p.sockets(t) <= own }, "more than the bridge's own sockets are open")
	return own
}

// countFDs counts the open descriptors of a process whose target (proc(5),
// /proc/PID/fd) begins with prefix.
func countFDs(t testing.TB, pid int, prefix string) int {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	n := 0
	for _, entry := range entries {
		if target, err := os.Readlink(dir + "/" + entry.Name()); err == nil && strings.HasPrefix(target, prefix) {
			n++
		}
	}
	return n
}

// eventually waits for a condition of another process's.
func eventually(t testing.TB, condition func() bool, format string, args ...any) {
	t.Helper()
	require.NoError(t, within(patience, condition), append([]any{format}, args...)...)
}

var errTooLate = errors.New("the condition did not come true in time")

func within(limit time.Duration, condition func() bool) error {
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			return errTooLate
		}
		time.Sleep(tick)
	}
	return nil
}

// requireOK: status 0, and not a word of our own.
func (r result) requireOK(t testing.TB) {
	t.Helper()
	require.Zero(t, r.code, "%s", r.stderr)
	require.NotContains(t, r.stderr, "gpg-bridge:")
}

// messages returns what the program said, line by line without its prefix. Only
// the program may have written to stderr, in the form that it promises.
func (r result) messages(t testing.TB) []string {
	t.Helper()
	var messages []string
	for line := range strings.Lines(r.stderr) {
		text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "gpg-bridge: ")
		require.True(t, ok, "%q", line)
		require.NotEmpty(t, text)
		require.False(t, strings.ContainsFunc(text, unicode.IsControl), "%q", text)
		require.NotEqual(t, byte('.'), text[len(text)-1], "%q", text)
		messages = append(messages, text)
	}
	return messages
}

// requireTwoLines: what is wrong, which holds text, and what to do, which holds
// advice.
func (r result) requireTwoLines(t testing.TB, text, advice string) {
	t.Helper()
	messages := r.messages(t)
	require.Len(t, messages, 2, "%q", r.stderr)
	require.Contains(t, messages[0], text)
	require.Contains(t, messages[1], advice)
}

// requireRefusal: the error in ssh's words, which hold text, or if these leave something out
// in both ssh's and ours, and last what to do, which holds advice.
func (r result) requireRefusal(t testing.TB, text, advice string) {
	t.Helper()
	require.Contains(t, r.stderr, text)
	lines := strings.Split(strings.TrimRight(r.stderr, "\n"), "\n")
	require.True(t, strings.HasPrefix(lines[len(lines)-1], "gpg-bridge: "), "%q", r.stderr)
	require.Contains(t, lines[len(lines)-1], advice)
	own := slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "gpg-bridge: ") })
	require.LessOrEqual(t, len(own), 2, "%q", r.stderr)
}

// requireWarning is requireTwoLines for what does not end the program.
func (r result) requireWarning(t testing.TB, text, advice string) {
	t.Helper()
	r.requireTwoLines(t, text, advice)
	require.True(t, strings.HasPrefix(r.stderr, "gpg-bridge: warning: "), "%q", r.stderr)
}
