package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// sessionBuffer is the largest payload of one packet of x/crypto's channels.
const sessionBuffer = 32 << 10

// A WindowSize is a terminal's, in characters and in pixels; 0 pixels is
// unknown.
type WindowSize struct {
	Cols, Rows, XPixels, YPixels uint32
}

// A PTY is the terminal that a session asks for (RFC 4254 section 6.2).
type PTY struct {
	Term string // as in the environment variable TERM
	WindowSize
	Modes []byte // encoded as in section 8; see Terminal.Modes
}

// An EnvVar is one variable for the remote environment. Servers refuse most:
// see AcceptEnv in sshd_config(5).
type EnvVar struct {
	Name, Value string
}

// A SessionRequest is a shell or a command, and what it is connected to.
type SessionRequest struct {
	Command string // run by the account's shell; empty is a login shell
	// Subsystem: Command is the name of a subsystem, such as "sftp" (RFC 4254
	// section 6.5), and no shell is involved.
	Subsystem bool
	PTY       *PTY // nil: no terminal
	Env       []EnvVar
	// ForwardAgent lets it use the ssh-agent, once Client.ForwardAgent was
	// called. A server that refuses is not noticed.
	ForwardAgent bool

	// Stdin is read until it ends or fails; that is the EOF of the remote
	// stdin. NoStdin, or a nil Stdin, is EOF at once.
	Stdin   io.Reader
	NoStdin bool
	// Escape, where not nil, takes escape sequences out of Stdin.
	Escape *Escape
	// Stdout and Stderr may be nil, which discards. With a PTY everything
	// arrives on Stdout. A Write must not block for ever: Session waits for it.
	Stdout, Stderr io.Writer

	// Resize gives the terminal's size whenever it changes.
	Resize <-chan WindowSize
	// Started, where not nil, is called when the server has started the shell
	// or command, before Stdin is read: the moment for raw mode.
	Started func()
	// PTYRefused, where not nil, is called in the stead of Started when the
	// server refuses the terminal, before anything runs. The shell or command
	// is then started without one, unless it returns an error, which ends the
	// session.
	PTYRefused func() error

	isRun bool // Run's: see there
}

// Session runs the request and returns what ssh would exit with: the status
// of the remote command, or ExitConnectionLost with an error that says why:
// an *ExitError for a signal, ErrNoExitStatus, a *LostError, a
// *RequestRefusedError, ErrDisconnected, the cause of ctx. A failure to write Stdout or Stderr is returned beside the
// status; the remote command then gets SIGPIPE from an OpenSSH server.
//
// The channel is opened in one round trip; pty-req, env and shell or exec then
// leave in one flight. To notice that the server refuses the pty, with
// PTYRefused, costs one more, since x/crypto sends no second request on a
// channel while one is unanswered, and a shell that is refused must be noticed
// too: so ask for it ahead (AskPTYAhead).
//
// Stdin is read by a goroutine that Session does not wait for: a Read cannot be
// interrupted, unless Stdin has a way (Terminal.Input has). It ends after the
// Read under way.
func (c *Client) Session(ctx context.Context, req SessionRequest) (status int, err error) {
	exit, err := c.runSession(ctx, req)
	if exit.signal != "" {
		err = errors.Join(exit.err(), err)
	}
	return exit.code(), err
}

// runSession returns how the remote command ended. The error is what went
// wrong apart from that; it is never nil where exit is not known.
func (c *Client) runSession(ctx context.Context, req SessionRequest) (exit, error) {
	s, err := c.openSession(ctx, req)
	if err != nil {
		return exit{}, err
	}
	defer s.end()
	stop := context.AfterFunc(ctx, func() { _ = s.ch.Close() })
	defer stop()
	if err := s.start(ctx, req); err != nil {
		return exit{}, err
	}
	c.wire.sessionStarted()
	if req.Started != nil && !s.isPTYRefused {
		req.Started()
	}
	go s.copyInput(s.input(req))
	go s.sendChanges(req.Resize)
	exit, err := s.wait(ctx)
	if errors.Is(err, ErrNoExitStatus) {
		err = errors.Join(c.lostWith(ctx), err)
	}
	return exit, err
}

// lostWith returns what the connection was lost with, or nil if the server
// still answers: then it was the channel alone that ended.
func (c *Client) lostWith(ctx context.Context) error {
	lost := make(chan error, 1)
	go func() { // ends with the answer or the connection
		if c.askAlive() == nil {
			lost <- nil
			return
		}
		lost <- c.Wait()
	}()
	select {
	case err := <-lost:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A session is one session channel under way. Its goroutines end with the
// channel, and the channel when the server closes it or the connection ends.
// Session waits for the end of the channel, unless ctx ends before: a server
// that does not answer must not hold it. The gates then keep what is left of
// them away from the caller's writers.
type session struct {
	ch             ssh.Channel
	pty            *askedPTY     // nil for none, or one whose answer nobody awaits
	isPTYRefused   bool          // known once start has returned
	done           chan struct{} // closed by end: Session returns
	over           chan struct{} // closed by receive: the channel is over, exit is set, all output written
	exit           exit          // owned by receive until over
	stdout, stderr gate
	breaks         chan struct{} // BREAKs to send, one at a time
	quit           chan struct{} // closed by disconnect: the user has had enough
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
		return nil, &LostError{Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	s := &session{
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

// receive takes the channel's output and requests until it is over.
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

// copyOutput copies until the channel ends. When the writer fails the rest is
// read and dropped, and for stdout the server is told to let the process
// notice (eow@openssh.com, OpenSSH's PROTOCOL section 2.1).
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

// start sends the requests that lead to a running process, and waits for the
// answer to the last.
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

// input is what the remote stdin gets, nil for nothing. With Escape, stdin is
// read by a goroutine of its own, so that the escape sequences work on a link
// that takes nothing any more.
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

// copyInput is the only writer of the channel.
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
	return exit{}, errors.Join(ErrNoExitStatus, err)
}

// end lets go of the caller's readers and writers. A channel that is still
// open is closed, without waiting for the link.
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
