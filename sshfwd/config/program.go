package config

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"unicode"

	"gpg-bridge/internal/realssh"
	"gpg-bridge/internal/usertext"
)

// A program is the user's own ssh.
type program struct {
	path    string
	environ []string
}

// findSSH returns an error that wraps [exec.ErrNotFound] where there is no ssh to ask. Errors
// are *Error.
func findSSH(ctx context.Context) (program, error) {
	path, environ, err := realssh.Find(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return program{}, &Error{Problem: "there is no ssh to ask", Advice: "install OpenSSH's client", Err: err}
	case err != nil:
		return program{}, &Error{Problem: err.Error(), Advice: usertext.Hint(err)}
	}
	return program{path, environ}, nil
}

// run returns what ssh printed, and the lines that it wrote to stderr, safe for a terminal.
// ssh gets no stdin: with -G it asks nothing.
func (p program) run(ctx context.Context, args ...string) (out []byte, said []string, err error) {
	stdout, stderr := newOutput(), newOutput()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = p.environ
	cmd.Stdout, cmd.Stderr = stdout.to, stderr.to
	err = errors.Join(stdout.err, stderr.err)
	if err == nil {
		err = cmd.Run()
	}
	out = stdout.end()
	for line := range strings.Lines(string(stderr.end())) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line != "" && !strings.HasPrefix(line, "Pseudo-terminal will not be allocated") {
			said = append(said, usertext.Line(line))
		}
	}
	return out, said, err
}
