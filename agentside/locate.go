package agentside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"gpg-bridge/internal/usertext"
)

// gpgconfTimeout bounds a run of gpgconf, which only reads a few files.
const gpgconfTimeout = 4 * time.Second

// The names of the agent's sockets in gpgconf --list-dirs.
const (
	extraSocket = "agent-extra-socket" // restricted
	mainSocket  = "agent-socket"
)

// ErrNoGpgconf says that GnuPG is not installed.
var ErrNoGpgconf = usertext.WithHint(
	"gpgconf not found",
	"install GnuPG, or name the agent's socket with --agent-socket",
)

// A Locator finds the local agent's socket and starts the agent. The zero
// value asks the gpgconf in PATH. Several goroutines may use it; it must not be
// copied after its first use.
type Locator struct {
	// AgentSocket is the path to connect to: a socket, or any of the three kinds of
	// files that stand for one. Nothing else is tried then, and nothing started. If it
	// is empty, gpgconf is asked, each time anew, and the agent is started if it does
	// not run.
	AgentSocket string

	// Gpgconf is gpgconf's path. If it is empty, gpgconf is searched in PATH, and then
	// where GnuPG installs itself.
	Gpgconf string

	// Env is the environment for gpgconf, and for the variables in a redirect, if
	// GNUPGHOME is to be another one than this process's. If it is nil, it is this
	// process's environment.
	Env []string

	launching sync.Mutex // held while gpgconf starts the agent: see launch
}

// Locate returns where the agent listens, or would listen if it ran. It does not
// connect. The error is ErrNoGpgconf, a *GpgconfError, or ctx's.
func (l *Locator) Locate(ctx context.Context) (*Endpoint, error) {
	if l.AgentSocket != "" {
		return &Endpoint{locator: l, path: l.AgentSocket, fixed: true}, nil
	}
	path, err := l.socketPath(ctx, extraSocket)
	if err != nil {
		return nil, err
	}
	return &Endpoint{locator: l, path: path}, nil
}

// HomeDir returns the GnuPG home, as gpgconf says. The errors are those of Locate.
func (l *Locator) HomeDir(ctx context.Context) (string, error) { return l.socketPath(ctx, "homedir") }

// socketPath asks gpgconf for the path of this name. Asked for one name, gpgconf prints
// the path as it is, while it escapes those of the whole list; on some systems it ends
// the line with CR LF.
func (l *Locator) socketPath(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gpgconfTimeout)
	defer cancel()
	out, err := l.gpgconf(ctx, "--list-dirs", name)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "\r")
	if runtime.GOOS == "windows" {
		path = windowsPath(path)
	}
	if !filepath.IsAbs(path) {
		return "", &GpgconfError{Args: "--list-dirs " + name, Err: fmt.Errorf("%q is not an absolute path", path)}
	}
	return path, nil
}

// windowsPath turns a POSIX path from the gpgconf of Git for Windows or Cygwin,
// "/c/Users/me" or "/cygdrive/c/Users/me", into one that Windows knows. Any other
// path is returned unchanged, since only those environments know what it means.
func windowsPath(path string) string {
	rest := strings.TrimPrefix(path, "/cygdrive")
	if len(rest) < 3 || rest[0] != '/' || rest[2] != '/' {
		return path
	}
	drive := rest[1] | 0x20 // to lower case, if it is a letter
	if drive < 'a' || drive > 'z' {
		return path
	}
	return strings.ToUpper(rest[1:2]) + ":" + strings.ReplaceAll(rest[2:], "/", `\`)
}

// gpgconf runs gpgconf and returns what it printed.
func (l *Locator) gpgconf(ctx context.Context, args ...string) ([]byte, error) {
	path, err := l.findGpgconf(gpgconfDirs)
	if err != nil {
		return nil, err
	}
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	apart(cmd)
	cmd.Env, cmd.Stdout, cmd.Stderr = l.Env, &out, &errOut
	// An agent that gpgconf has started may have inherited its stderr; the end of
	// that is not waited for.
	cmd.WaitDelay = time.Second
	start := time.Now()
	err = cmd.Run()
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil, newSilentError("gpgconf", args, start, gpgconfTimeout)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, &GpgconfError{Args: strings.Join(args, " "), Stderr: errOut.String(), Err: err}
	}
	return out.Bytes(), nil
}

// findGpgconf returns Gpgconf, or else looks in PATH and then in dirs.
func (l *Locator) findGpgconf(dirs func() []string) (string, error) {
	if l.Gpgconf != "" {
		return l.Gpgconf, nil
	}
	if path := findProgram("gpgconf", dirs); path != "" {
		return path, nil
	}
	return "", ErrNoGpgconf
}

// findProgram looks in PATH and then in dirs, which is not called if the program is in PATH.
// It returns "" if it is nowhere.
func findProgram(name string, dirs func() []string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range dirs() {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// getenv looks a variable up in gpgconf's environment.
func (l *Locator) getenv(name string) string {
	if l.Env == nil {
		return os.Getenv(name)
	}
	for _, entry := range slices.Backward(l.Env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// A GpgconfError says that gpgconf could not be run, or failed.
type GpgconfError struct {
	Args   string // for example "--launch gpg-agent"
	Stderr string // what gpgconf said
	Err    error
}

func (e *GpgconfError) Error() string {
	if said := strings.TrimSpace(e.Stderr); said != "" {
		return fmt.Sprintf("gpgconf %s: %v: %q", e.Args, e.Err, said)
	}
	return fmt.Sprintf("gpgconf %s: %v", e.Args, e.Err)
}

func (e *GpgconfError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *GpgconfError) Hint() string {
	return "run it yourself and see what it says: gpgconf " + e.Args
}
