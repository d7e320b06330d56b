package gpghome

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// closeTimeout bounds each program that Close runs: Close must not hang with the agent.
const closeTimeout = 5 * time.Second

// A Home is one GNUPGHOME. Its methods may be called from several goroutines.
type Home struct {
	dir string

	// programs is a directory with the GnuPG programs of another version; ""
	// for those in PATH.
	programs string

	// agentPID is the process ID that the agent told last, 0 before that. It is kept
	// because an agent that hangs can no longer be asked.
	agentPID atomic.Int64
}

// New makes an empty home. No agent runs yet: the first gpg that needs one, or
// StartAgent, starts it. The caller owns the home and must Close it.
//
// The directory lies under /tmp and not under os.TempDir, because its sockets'
// names must fit into the 107 bytes of sun_path.
func New() (*Home, error) { return NewWith("") }

// NewWith is New for a home that prefers the programs in a directory to those in PATH.
func NewWith(programs string) (*Home, error) {
	base := "/tmp"
	if runtime.GOOS == "windows" {
		base = ""
	}
	dir, err := os.MkdirTemp(base, "gbh")
	if err != nil {
		return nil, fmt.Errorf("gpghome: %w", err)
	}
	h := &Home{dir: dir, programs: programs}
	if err := h.configure(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return h, nil
}

func (h *Home) configure() error {
	if err := h.SetPinentry(PinentryCancels()); err != nil {
		return err
	}
	// s2k-count: the agent would otherwise measure the machine for 0.8 s, and
	// take 0.1 s for each passphrase, as a real home should.
	err := h.AppendConfig("gpg-agent.conf", "pinentry-program "+h.pinentryPath(), "disable-scdaemon", "s2k-count 65536")
	if err != nil {
		return err
	}
	return h.AppendConfig("gpg.conf", "no-greeting", "disable-dirmngr")
}

// Dir returns the home's directory, absolute.
func (h *Home) Dir() string { return h.dir }

// Env returns the environment for programs that shall use this home: the process's own, but
// with GNUPGHOME, a separate runtime directory, messages in English, and nothing that leads to
// another agent, a terminal or a display.
func (h *Home) Env() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "GNUPGHOME", "XDG_RUNTIME_DIR", "GPG_AGENT_INFO", "GPG_TTY", "SSH_AUTH_SOCK", "DISPLAY", "WAYLAND_DISPLAY",
			"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES":
		case "PATH":
			env = append(env, "PATH="+h.path(entry[len("PATH="):]))
		default:
			env = append(env, entry)
		}
	}
	return append(env, "GNUPGHOME="+h.dir, "XDG_RUNTIME_DIR="+h.dir, "LC_ALL=C")
}

func (h *Home) path(others string) string {
	if h.programs == "" {
		return others
	}
	return h.programs + string(filepath.ListSeparator) + others
}

// AppendConfig adds lines to one of the home's configuration files, such as
// gpg-agent.conf. A running agent reads them when it is restarted.
func (h *Home) AppendConfig(name string, lines ...string) error {
	f, err := os.OpenFile(filepath.Join(h.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("gpghome: %w", err)
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("gpghome: %w", err)
	}
	return nil
}

// A CommandError is a program that failed, with what it said on stderr.
type CommandError struct {
	Name   string // the program and its arguments
	Stderr string
	Err    error // an *exec.ExitError, or why it did not start
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Name, e.Err, strings.TrimSpace(e.Stderr))
}

func (e *CommandError) Unwrap() error { return e.Err }

// Run runs a program with the home's environment. stdin may be nil. A failure
// is a *CommandError; the output is returned with it.
func (h *Home) Run(ctx context.Context, stdin io.Reader, name string, args ...string) (stdout, stderr []byte, err error) {
	var out, errOut bytes.Buffer
	if path, err := exec.LookPath(filepath.Join(h.programs, name)); h.programs != "" && err == nil {
		name = path
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = h.Env()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	// An agent that the program started may have inherited its stderr; do not
	// wait for the agent's end.
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return out.Bytes(), errOut.Bytes(), &CommandError{Name: strings.Join(cmd.Args, " "), Stderr: errOut.String(), Err: err}
	}
	return out.Bytes(), errOut.Bytes(), nil
}

// Socket returns a path as `gpgconf --list-dirs` names it, for example
// "agent-socket" or "agent-extra-socket".
func (h *Home) Socket(ctx context.Context, name string) (string, error) {
	out, _, err := h.Run(ctx, nil, "gpgconf", "--list-dirs", name)
	if err != nil {
		return "", fmt.Errorf("gpghome: %w", err)
	}
	path := strings.TrimRight(string(out), "\r\n")
	if path == "" {
		return "", fmt.Errorf("gpghome: gpgconf knows no %q", name)
	}
	return path, nil
}

// ExtraSocket returns the path of the agent's restricted socket.
func (h *Home) ExtraSocket(ctx context.Context) (string, error) {
	return h.Socket(ctx, "agent-extra-socket")
}

// AgentSocket returns the path of the agent's main socket.
func (h *Home) AgentSocket(ctx context.Context) (string, error) {
	return h.Socket(ctx, "agent-socket")
}

// Close ends the agent, and removes the home and the directory of its sockets.
// It may be called again.
func (h *Home) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*closeTimeout)
	defer cancel()
	if _, err := os.Stat(h.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	stopErr := h.StopAgent(ctx)
	// Without a /run/user directory the sockets lie in the home, and gpgconf
	// ignores the request and says so; only the home's removal counts.
	_, _, _ = h.Run(ctx, nil, "gpgconf", "--remove-socketdir")
	if err := errors.Join(stopErr, os.RemoveAll(h.dir)); err != nil {
		return fmt.Errorf("gpghome: close: %w", err)
	}
	return nil
}
