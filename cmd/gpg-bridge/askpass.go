package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"gpg-bridge/sshfwd"
)

// maxAnswer is the most that is taken from an askpass program; ssh's own bound
// (ssh_askpass in OpenSSH's readpass.c).
const maxAnswer = 1023

// defaultAskpass is asked where SSH_ASKPASS names no program.
const defaultAskpass = "ssh-askpass"

// An askpass is the program that asks in the terminal's place, as the
// environment has it: SSH_ASKPASS, SSH_ASKPASS_REQUIRE and DISPLAY (ssh(1),
// ENVIRONMENT; read_passphrase in OpenSSH's readpass.c).
type askpass struct {
	program string
	allowed bool // there is a display, or SSH_ASKPASS_REQUIRE is force
	first   bool // even where there is a terminal
}

func newAskpass(getenv func(string) string) askpass {
	a := askpass{program: getenv("SSH_ASKPASS")}
	if a.program == "" {
		a.program = defaultAskpass
	}
	a.allowed = getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""
	switch strings.ToLower(getenv("SSH_ASKPASS_REQUIRE")) {
	case "force":
		a.allowed, a.first = true, true
	case "prefer":
		a.first = a.allowed
	case "never":
		a.allowed = false
	}
	return a
}

// A prompter asks the user on behalf of ssh: on the terminal, or through
// SSH_ASKPASS where there is none or the user wants it so. It is never asked in
// BatchMode.
type prompter struct {
	ui      *ui
	askpass askpass

	mu sync.Mutex // one program at a time
}

func newPrompter(ui *ui) *prompter { return &prompter{ui: ui, askpass: newAskpass(os.Getenv)} }

var _ sshfwd.Prompter = (*prompter)(nil)

// nowhereToAskError: no terminal, and no askpass program may be used.
type nowhereToAskError struct{}

func (nowhereToAskError) Error() string { return errNoTerminal.Error() }
func (nowhereToAskError) Hint() string {
	return "set SSH_ASKPASS to a program that asks and SSH_ASKPASS_REQUIRE=force, or add the key to your ssh-agent (ssh-add)"
}

// AskSecret asks for a passphrase or a password.
func (p *prompter) AskSecret(ctx context.Context, prompt string) ([]byte, error) {
	if p.usesAskpass() {
		answer, _ := p.run(ctx, prompt, "")
		return answer, context.Cause(ctx)
	}
	answer, err := p.ui.AskSecret(ctx, prompt)
	return answer, whereToAsk(err)
}

// Ask asks for a line.
func (p *prompter) Ask(ctx context.Context, prompt string) (string, error) {
	if p.usesAskpass() {
		answer, _ := p.run(ctx, prompt, "")
		return string(answer), context.Cause(ctx)
	}
	answer, err := p.ui.Ask(ctx, prompt)
	return answer, whereToAsk(err)
}

// Confirm asks for a permission, which only an askpass program can give: an
// empty answer or "yes" (ask_permission in readpass.c).
func (p *prompter) Confirm(ctx context.Context, question string) bool {
	if !p.askpass.allowed {
		return false
	}
	answer, ok := p.run(ctx, question, "confirm")
	return ok && (len(answer) == 0 || strings.EqualFold(string(answer), "yes"))
}

// Notice shows text, on lines of its own.
func (p *prompter) Notice(text string) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	p.ui.Notice(text)
}

func whereToAsk(err error) error {
	if errors.Is(err, errNoTerminal) {
		return nowhereToAskError{}
	}
	return err
}

func (p *prompter) usesAskpass() bool {
	if !p.askpass.allowed || p.askpass.first {
		return p.askpass.first
	}
	tty, err := openTerminal()
	if err != nil {
		return true
	}
	tty.close()
	return false
}

// run runs the askpass program with the prompt as its argument. The answer is
// the first line that it prints. Like ssh, a program that fails, or that the
// user cancels, has given an empty one: ok is false then. hint is for its
// SSH_ASKPASS_PROMPT.
func (p *prompter) run(ctx context.Context, prompt, hint string) (answer []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out boundedBuffer
	cmd := exec.CommandContext(ctx, p.askpass.program, prompt)
	cmd.Stdout, cmd.Stderr = &out, p.ui.stderr
	cmd.WaitDelay = time.Second
	if hint != "" {
		cmd.Env = append(os.Environ(), "SSH_ASKPASS_PROMPT="+hint)
	}
	err := cmd.Run()
	defer func() { clear(out.data[len(answer):]) }()
	var failed *exec.ExitError
	switch {
	case err == nil:
		if end := bytes.IndexAny(out.data, "\r\n"); end >= 0 {
			return out.data[:end:end], true
		}
		return out.data, true
	case ctx.Err() == nil && !errors.As(err, &failed):
		p.ui.warn(fmt.Errorf("cannot ask through SSH_ASKPASS %q: %w", p.askpass.program, err))
	}
	return nil, false
}

var errLongAnswer = errors.New("the answer is too long")

// boundedBuffer holds what a program prints, up to maxAnswer bytes.
type boundedBuffer struct{ data []byte }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.data == nil {
		b.data = make([]byte, 0, maxAnswer) // so that no copy is left behind
	}
	if len(b.data)+len(p) > maxAnswer {
		return 0, errLongAnswer
	}
	b.data = append(b.data, p...)
	return len(p), nil
}
