package ui

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

	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/usertext"
)

// defaultAskpass is asked where SSH_ASKPASS names no program.
const defaultAskpass = "ssh-askpass"

// An askpass is the program that asks instead of the terminal, as the environment
// says: SSH_ASKPASS, SSH_ASKPASS_REQUIRE and DISPLAY (ssh(1), ENVIRONMENT;
// read_passphrase in OpenSSH's readpass.c).
type askpass struct {
	program string
	allowed bool // there is a display, or SSH_ASKPASS_REQUIRE is force
	first   bool // use it even if there is a terminal
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

// A prompter asks the user on behalf of ssh: on the terminal, or with SSH_ASKPASS if there is
// none or the user wants that. It is not called in BatchMode.
type prompter struct {
	ui      *UI
	askpass askpass

	mu sync.Mutex // one program at a time
}

// NewPrompter returns an Asker that asks the user of this UI on behalf of ssh.
func NewPrompter(user *UI) usertext.Asker { return &prompter{ui: user, askpass: newAskpass(os.Getenv)} }

var _ usertext.Asker = (*prompter)(nil)

// nowhereToAskError says that there is no terminal, and that no askpass program may be used.
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

// Confirm asks for a permission, which only an askpass program can give, by an empty answer or
// "yes" (ask_permission in readpass.c).
func (p *prompter) Confirm(ctx context.Context, question string) bool {
	if !p.askpass.allowed {
		return false
	}
	answer, ok := p.run(ctx, question, "confirm")
	return ok && (len(answer) == 0 || strings.EqualFold(string(answer), "yes"))
}

// Notice shows text, on lines of its own.
func (p *prompter) Notice(level usertext.Level, text string) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	p.ui.Notice(level, text)
}

// Banner shows the server's text, on lines of its own.
func (p *prompter) Banner(text string) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	p.ui.ShowAt(usertext.Info, usertext.Printable(text))
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

// run runs the askpass program with the prompt as its argument, and hint in
// SSH_ASKPASS_PROMPT. The answer is the first line that it prints. If the program fails, or the
// user cancels it, the answer is empty, as with ssh, and ok is false.
func (p *prompter) run(ctx context.Context, prompt, hint string) (answer []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out boundedBuffer
	cmd := exec.CommandContext(ctx, p.askpass.program, prompt)
	cmd.Stdout, cmd.Stderr = &out, p.ui.Stderr
	cmd.WaitDelay = time.Second
	if hint != "" {
		cmd.Env = append(os.Environ(), "SSH_ASKPASS_PROMPT="+hint)
	}
	err := cmd.Run()
	proc.AwaitSignal(ctx, err)
	defer func() { clear(out.data[len(answer):]) }()
	var failed *exec.ExitError
	switch {
	case err == nil:
		if end := bytes.IndexAny(out.data, "\r\n"); end >= 0 {
			return out.data[:end:end], true
		}
		return out.data, true
	case ctx.Err() == nil && !errors.As(err, &failed):
		p.ui.Warn(fmt.Errorf("cannot ask through SSH_ASKPASS %q: %w", p.askpass.program, err))
	}
	return nil, false
}

// boundedBuffer holds what a program prints, up to maxTyped bytes.
type boundedBuffer struct{ data []byte }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.data == nil {
		b.data = make([]byte, 0, maxTyped) // so that no copy is left behind
	}
	if len(b.data)+len(p) > maxTyped {
		return 0, errTypedTooMuch
	}
	b.data = append(b.data, p...)
	return len(p), nil
}
