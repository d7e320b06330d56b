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
)

// gpgconfTimeout bounds a question to gpgconf, which reads a few files.
const gpgconfTimeout = 10 * time.Second

// The agent's sockets, as gpgconf --list-dirs calls them.
const (
	extraSocket = "agent-extra-socket" // restricted
	mainSocket  = "agent-socket"
)

// ErrNoGpgconf says that GnuPG is not there.
var ErrNoGpgconf error = &hintedError{
	text: "gpgconf not found",
	hint: "install GnuPG, or name the agent's socket with --agent-socket",
}

// A Locator finds the local agent's socket and starts the agent. The zero
// value asks the gpgconf in PATH. It may be used by several goroutines, and
// must not be copied after its first use.
type Locator struct {
	// AgentSocket is the path to connect to, of any of the four kinds. Empty:
	// gpgconf is asked, each time anew, and the agent started when it does
	// not run. A path that was given is used as it is: nothing else is tried
	// and nothing started.
	AgentSocket string

	// Gpgconf is gpgconf's path. Empty: it is searched in PATH, and then where
	// GnuPG installs itself.
	Gpgconf string

	// Env is gpgconf's environment, and that of the variables in a redirect,
	// for another GNUPGHOME than this process's; nil: this process's.
	Env []string

	launching sync.Mutex // held while gpgconf starts the agent: see launch
}

// Locate returns where the agent listens, or would if it ran. It connects to
// nothing. The error is ErrNoGpgconf, a *GpgconfError, or ctx's.
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

// socketPath asks gpgconf for one directory entry. The named form prints the
// path raw, where the list of all escapes it; some systems end it with CR LF.
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

// windowsPath turns a POSIX path of Git for Windows' or Cygwin's own gpgconf,
// "/c/Users/me" or "/cygdrive/c/Users/me", into one that Windows knows. Others
// are returned as they are: only those environments could tell what they mean.
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
	path, err := l.findGpgconf(gpgconfDirs())
	if err != nil {
		return nil, err
	}
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	withoutConsole(cmd)
	cmd.Env, cmd.Stdout, cmd.Stderr = l.Env, &out, &errOut
	// An agent that gpgconf started may have inherited its stderr: its end is
	// not waited for.
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, &GpgconfError{Args: strings.Join(args, " "), Stderr: errOut.String(), Err: err}
	}
	return out.Bytes(), nil
}

// findGpgconf returns the path that was given, or else looks into PATH and
// then into dirs.
func (l *Locator) findGpgconf(dirs []string) (string, error) {
	if l.Gpgconf != "" {
		return l.Gpgconf, nil
	}
	if path, err := exec.LookPath("gpgconf"); err == nil {
		return path, nil
	}
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, "gpgconf")); err == nil {
			return path, nil
		}
	}
	return "", ErrNoGpgconf
}

// getenv reads the environment that gpgconf has.
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
