package realssh

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Find returns the path of the user's own ssh, and the environment to run it with: the first
// in PATH that is not this program. On Windows it prefers the system's to the one that Git
// brings along, which uses MSYS paths. The error wraps [exec.ErrNotFound] where there is none.
// It runs scripts named ssh to ask what they are, for a second at most, and once for each
// under a context of [Remembering].
func Find(ctx context.Context) (path string, environ []string, err error) {
	above := tracesIn(os.Environ())
	if above.depth >= mostDepth {
		return "", nil, &LoopError{}
	}
	first, last := above.split(candidates())
	for _, candidate := range first {
		if !isThisProgram(ctx, candidate, above.depth > 0) {
			return candidate, above.with(candidate), nil
		}
	}
	// A script of the user's own may be there again by a ProxyCommand, and be all there is.
	for _, candidate := range last {
		if ask(ctx, candidate) == another {
			return candidate, above.with(candidate), nil
		}
	}
	if len(last) > 0 {
		return "", nil, &LoopError{}
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
	return (askAll || mayBeScript(path)) && ask(ctx, path) == ours
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
