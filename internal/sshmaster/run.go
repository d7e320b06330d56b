package sshmaster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/signals"
	"gpg-bridge/internal/ui"
)

// endGrace is what an ssh gets to end after it was asked to.
const endGrace = 2 * time.Second

// Stdio are the streams of this process; only files are given to an ssh.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// An ExitError says that an ssh of the user's ended other than with status 0. It has told its user
// why.
type ExitError struct {
	Status int            // 255 if Signal is set
	Signal syscall.Signal // which ended it; 0 for none
}

func (e *ExitError) Error() string {
	if e.Signal != 0 {
		return fmt.Sprintf("ssh was ended by a signal: %v", e.Signal)
	}
	return fmt.Sprintf("ssh ended with status %d", e.Status)
}

// Session runs the user's words over the connection, with our standard streams, and returns when
// that ssh has ended. It may log in itself if mayConnect: the bridge's preparation can have the only
// session that the host grants. The error is an *ExitError for any status but 0.
func (m *Master) Session(ctx context.Context, mayConnect bool) error {
	return m.sessionOptions().run(ctx, m.sessionWords(mayConnect), m.options.Stdio.In)
}

// sessionOptions have the environment that the host may be sent (SendEnv in ssh_config(5)).
func (m *Master) sessionOptions() *Options {
	o := *m.options
	o.Env = o.SessionEnv
	return &o
}

func (m *Master) sessionWords(mayConnect bool) []string {
	if m.ours {
		return m.options.sessionArgs(m.path, mayConnect)
	}
	return m.options.Line.Args
}

// run runs an ssh in the foreground of our terminal. A nil stdin is empty. When ctx ends, ssh gets
// the signal that ended it.
func (o *Options) run(ctx context.Context, args []string, stdin io.Reader) error {
	process, err := o.start(append([]string{o.SSH, "ssh"}, args...), stdin, &os.ProcAttr{})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- await(process) }() // ends with ssh, for which end waits
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return end(ctx, process, ended)
	}
}

// Plain runs the user's words without a bridge.
func Plain(ctx context.Context, o Options) error { return o.run(ctx, o.Line.Args, o.Stdio.In) }

// errTaken says that another ssh shares its connection where ours was to.
var errTaken = errors.New("another ssh shares its connection there")

// takenLook is the time between two looks whether that is so.
const takenLook = 250 * time.Millisecond

// logIn is run for an ssh that goes to the background when it is logged in. If taken says so twice
// and ssh is still there, it never will: it is ended, whatever it asks its user, and the error is
// errTaken. taken may be nil.
func (o *Options) logIn(ctx context.Context, args []string, taken func() bool) error {
	if taken == nil {
		return o.run(ctx, args, o.Stdio.In)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var looking sync.WaitGroup
	looking.Go(func() {
		for seen := 0; retry.Sleep(ctx, takenLook, nil) == nil; {
			if seen++; !taken() {
				seen = 0
			} else if seen > 1 {
				cancel(errTaken)
			}
		}
	})
	err := o.run(ctx, args, o.Stdio.In)
	over := context.Cause(ctx)
	cancel(nil)
	looking.Wait()
	if err != nil && errors.Is(over, errTaken) {
		return errTaken
	}
	return err
}

// start starts a program, the first of words, with our output. The others are its name and
// arguments.
func (o *Options) start(words []string, stdin io.Reader, attributes *os.ProcAttr) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := []*os.File{null, null, null}
	for i, stream := range []any{stdin, o.Stdio.Out, o.Stdio.Err} {
		if file, ok := stream.(*os.File); ok && file != nil {
			files[i] = file
		}
	}
	attributes.Env, attributes.Files = o.Env, append(files, attributes.Files...)
	process, err := os.StartProcess(words[0], words[1:], attributes)
	if err != nil {
		return nil, fmt.Errorf("run your ssh: %w", err)
	}
	return process, nil
}

// await returns when ssh has ended.
func await(ssh *os.Process) error {
	state, err := ssh.Wait()
	if err != nil || state.Success() {
		return err
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &ExitError{Status: ui.ExitConnection, Signal: status.Signal()}
	}
	return &ExitError{Status: state.ExitCode()}
}

// end ends an ssh whose ctx has ended.
func end(ctx context.Context, process *os.Process, ended <-chan error) error {
	var signal os.Signal = syscall.SIGTERM
	if s, ok := errors.AsType[*signals.Error](context.Cause(ctx)); ok {
		signal = s.Signal
	}
	_ = process.Signal(signal)
	grace := time.NewTimer(endGrace)
	defer grace.Stop()
	select {
	case err := <-ended:
		return err
	case <-grace.C:
		_ = process.Kill()
		return <-ended
	}
}
