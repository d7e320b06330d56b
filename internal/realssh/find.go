package realssh

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Find returns the path of the user's own ssh, and the environment to run it with: the first
// in PATH that is not this program. On Windows it prefers the system's to the one that Git
// brings along, which uses MSYS paths. The error wraps [exec.ErrNotFound] where there is none.
// It runs scripts named ssh to ask what they are.
func Find(ctx context.Context) (path string, environ []string, err error) {
	above := depth(os.Environ())
	if above >= mostDepth {
		return "", nil, &LoopError{}
	}
	for _, candidate := range candidates() {
		if isThisProgram(ctx, candidate, above > 0) {
			continue
		}
		return candidate, append(Without(os.Environ()), fmt.Sprintf("%s=%d", variable, above+1)), nil
	}
	return "", nil, &exec.Error{Name: "ssh", Err: exec.ErrNotFound}
}

// Command returns the user's own ssh with arguments, ready to be started.
func Command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	path, environ, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = environ
	return cmd, nil
}

// candidates lists the paths that may be the user's own ssh. Relative directories of PATH do
// not count, as for [exec.LookPath].
func candidates() (paths []string) {
	var dirs []string
	if root := os.Getenv("SystemRoot"); runtime.GOOS == "windows" && root != "" {
		dirs = append(dirs, filepath.Join(root, "System32", "OpenSSH"))
	}
	for _, dir := range append(dirs, filepath.SplitList(os.Getenv("PATH"))...) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, "ssh")); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// isThisProgram reports whether a candidate runs this program. askAll: even one that is no
// script is asked.
func isThisProgram(ctx context.Context, path string, askAll bool) bool {
	if self, err := os.Executable(); err == nil && isSameFile(path, self) {
		return true
	}
	return (askAll || mayBeScript(path)) && answers(ctx, path)
}

func isSameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// mayBeScript is also true for what cannot be read.
func mayBeScript(path string) bool {
	if runtime.GOOS == "windows" {
		return !strings.EqualFold(filepath.Ext(path), ".exe")
	}
	file, err := os.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = file.Close() }()
	var magic [2]byte
	_, err = file.Read(magic[:])
	return err != nil || magic == [2]byte{'#', '!'}
}

// askTime is how long a candidate may take to answer.
const askTime = 5 * time.Second

// answers asks a candidate whether it is this program.
func answers(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-V")
	cmd.Env = append(Without(os.Environ()), variable+"="+asked)
	cmd.WaitDelay = time.Second
	said, err := cmd.Output()
	return err == nil && strings.Contains(string(said), Answer)
}
