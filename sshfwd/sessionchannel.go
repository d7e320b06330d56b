package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
)

// sessionBuffer is the largest payload of one packet of x/crypto's channels.
const sessionBuffer = 32 << 10

// A session is one open session channel. Its goroutines end with the channel, which ends
// when the server closes it or the connection ends. Session waits for that, unless ctx ends
// before: a server that does not answer must not delay it. The gates then keep the
// goroutines that are left from using the caller's writers.
type session struct {
	client         *Client
	ch             ssh.Channel
	pty            *askedPTY     // nil if there is none, or its answer is not awaited
	isPTYRefused   bool          // set before start returns
	done           chan struct{} // closed by end, when Session returns
	over           chan struct{} // closed by receive: the channel has ended, exit is set, all output is written
	exit           exit          // receive's until over
	stdout, stderr gate
	breaks         chan struct{} // has a value if a BREAK is to be sent
	quit           chan struct{} // closed by disconnect, for ~.
	disconnect     func()
	keys           *keyQueue // nil without Escape
}

// openSession opens the channel, on which nothing runs yet.
func (c *Client) openSession(ctx context.Context, req SessionRequest) (*session, error) {
	var opened openedChannel
	if req.isRun {
		opened = c.runChannel(ctx)
	} else {
		opened = c.sessionChannel(ctx, req.PTY)
	}
	err := opened.err
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		return nil, &SessionRefusedError{Reason: refused.Reason.String(), Message: refused.Message}
	}
	if err != nil && ctx.Err() == nil {
		return nil, lost(err)
	}
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	s := &session{
		client: c,
		ch:     opened.ch,
		pty:    opened.pty,
		done:   make(chan struct{}),
		over:   make(chan struct{}),
		stdout: gate{w: req.Stdout},
		stderr: gate{w: req.Stderr},
		breaks: make(chan struct{}, 1),
		quit:   make(chan struct{}),
	}
	s.disconnect = sync.OnceFunc(func() { close(s.quit) })
	go s.receive(opened.reqs)
	return s, nil
}

// startHeld starts the shell or command, and calls Started before the first byte of output
// is written, which may come with the answer: raw mode must be set by then.
func (s *session) startHeld(ctx context.Context, req SessionRequest) (err error) {
	s.stdout.hold(func() {
		s.stderr.hold(func() {
			if err = s.start(ctx, req); err == nil && req.Started != nil && !s.isPTYRefused {
				req.Started()
			}
		})
	})
	return err
}

// start sends the requests that start the process, and waits for the answer to the last
// one.
func (s *session) start(ctx context.Context, req SessionRequest) error {
	if req.ForwardAgent {
		if _, err := s.ch.SendRequest(agentRequest, false, nil); err != nil {
			return fmt.Errorf("start a session: %w", err)
		}
	}
	if err := s.requestPTY(ctx, req); err != nil {
		return err
	}
	for _, env := range req.Env {
		if _, err := s.ch.SendRequest("env", false, ssh.Marshal(env)); err != nil {
			return fmt.Errorf("start a session: %w", err)
		}
	}
	switch {
	case req.Subsystem:
		return s.request(ctx, "subsystem", ssh.Marshal(struct{ Name string }{req.Command}))
	case req.Command == "":
		return s.request(ctx, "shell", nil)
	}
	return s.request(ctx, "exec", ssh.Marshal(struct{ Command string }{req.Command}))
}

// receive handles the channel's output and requests until its end.
func (s *session) receive(reqs <-chan *ssh.Request) {
	defer close(s.over)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.copyOutput(&s.stdout, s.ch, true) })
	wg.Go(func() { s.copyOutput(&s.stderr, s.ch.Stderr(), false) })
	for req := range reqs {
		s.exit.note(req)
		if req.WantReply {
			_ = req.Reply(false, nil)
		}
	}
}

// copyOutput copies until the channel ends. If the writer fails, the rest is read and
// dropped, and for stdout the server is told, so that the process learns of it
// (eow@openssh.com, OpenSSH's PROTOCOL section 2.1).
func (s *session) copyOutput(to *gate, from io.Reader, isStdout bool) {
	buf := make([]byte, sessionBuffer)
	for failed := false; ; {
		n, err := from.Read(buf)
		if n > 0 && !failed {
			failed = !to.write(buf[:n])
			if failed && isStdout {
				_, _ = s.ch.SendRequest("eow@openssh.com", false, nil)
			}
		}
		if err != nil {
			return
		}
	}
}

// input returns what is to be sent to the remote stdin, nil for nothing. With Escape, stdin
// is read by a goroutine of its own, so that escape sequences work even if the link takes
// no input any more.
func (s *session) input(req SessionRequest) io.Reader {
	switch {
	case req.NoStdin || req.Stdin == nil:
		return nil
	case req.Escape == nil:
		return req.Stdin
	}
	s.keys = newKeyQueue()
	go s.readKeys(req.Stdin, req.Escape, s.keys)
	return s.keys
}

// copyInput sends stdin, and then its end. Nothing else writes to the channel.
func (s *session) copyInput(stdin io.Reader) {
	defer func() { _ = s.ch.CloseWrite() }()
	if stdin == nil {
		return
	}
	buf := make([]byte, sessionBuffer)
	for !s.isDone() {
		n, err := stdin.Read(buf)
		if n > 0 {
			if _, err := s.ch.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// terminate ends a command that nobody waits for any more, and its children: if it hung, it
// would keep one of the connection's sessions (MaxSessions in sshd_config(5)). See RFC 4254
// section 6.9, and session_signal_req in session.c.
func (s *session) terminate() {
	_, _ = s.ch.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"TERM"}))
}

func (s *session) wait(ctx context.Context) (exit, error) {
	select {
	case <-s.over:
	case <-s.quit:
		return exit{}, ErrDisconnected
	case <-ctx.Done():
		return exit{}, context.Cause(ctx)
	}
	err := errors.Join(s.stdout.err, s.stderr.err)
	switch {
	case s.exit.known:
		return s.exit, err
	case ctx.Err() != nil:
		return exit{}, context.Cause(ctx)
	}
	return exit{}, errors.Join(link.ErrNoExitStatus, err)
}

// end releases the caller's readers and writers. If the channel is still open it is closed,
// without waiting for the link.
func (s *session) end() {
	close(s.done)
	if s.keys != nil {
		s.keys.end()
	}
	s.stdout.shut()
	s.stderr.shut()
	select {
	case <-s.over:
	default:
		go func() { _ = s.ch.Close() }()
	}
}

func (s *session) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
