package mux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/proc"
)

// Run runs command with the account's shell and without a terminal, and returns
// when it has ended and its output is written, or when ctx ends. stdin, the output and the
// error are as link.Link says: nil for status 0, a *link.ExitError for another,
// link.ErrNoExitStatus if there is none. The error may also be a *RefusedError or a
// *link.LostError.
func (l *Link) Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error {
	if command == "" {
		return errors.New("run: no command")
	}
	if err := l.run(ctx, command, stdin, stdout, stderr); err != nil {
		return fmt.Errorf("run %.40q: %w", command, err)
	}
	return nil
}

func (l *Link) run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error {
	c, err := l.control(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	var s stdio
	defer s.end()
	for _, err := range []error{s.input(stdin), s.output(stdout), s.output(stderr)} {
		if err != nil {
			return err
		}
	}
	session, err := c.openSession(ctx, command, s.theirs)
	if err != nil {
		return err
	}
	s.start()
	err = c.awaitExit(ctx, session)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, link.ErrNoExitStatus) {
		err = cmp.Or(l.whyLost(ctx), err)
	}
	s.copying.Wait()
	return errors.Join(err, s.err())
}

// whyLost asks the master, since the watch may not have noticed its end yet.
func (l *Link) whyLost(ctx context.Context) error {
	c, err := l.control(ctx)
	if err == nil {
		c.close()
	}
	return err
}

// openSession starts a command. The master takes the three descriptors behind
// the request, each with one byte (mm_send_fd in OpenSSH's monitor_fdpass.c).
func (c *control) openSession(ctx context.Context, command string, files []*os.File) (session uint32, err error) {
	defer c.until(ctx)()
	if err := c.send(askNewSession, sessionBody{Escape: noEscape, Command: command}); err != nil {
		return 0, told(ctx, err)
	}
	for _, file := range files {
		if err := proc.SendFile(c.conn, file); err != nil {
			return 0, told(ctx, err)
		}
	}
	m, err := c.answer(ctx, "open a session")
	if err != nil {
		return 0, err
	}
	session, err = m.number()
	if m.Kind != saySessionOpened || err != nil {
		return 0, errProtocol
	}
	return session, nil
}

// awaitExit reads until the master closes the connection, which it does when it has written
// all of the session's output: closing it earlier would lose some.
func (c *control) awaitExit(ctx context.Context, session uint32) error {
	defer c.until(ctx)()
	exit := link.ErrNoExitStatus
	for {
		m, err := c.receive()
		if err != nil {
			return exit
		}
		if m.Kind != sayExitMessage || m.ID != session {
			continue
		}
		switch status, err := m.number(); {
		case err != nil:
			exit = errProtocol
		case status != 0:
			exit = &link.ExitError{Status: int(status)}
		default:
			exit = nil
		}
	}
}

// stdio is a session's input and output: pipes, of which the master gets the other ends.
type stdio struct {
	theirs []*os.File
	ours   []*os.File
	feed   func()
	drain  []func() error

	copying sync.WaitGroup
	mu      sync.Mutex
	failed  []error
}

func (s *stdio) input(from io.Reader) error {
	if from == nil {
		return s.null(os.O_RDONLY)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs, s.ours = append(s.theirs, r), append(s.ours, w)
	s.feed = func() {
		_, _ = io.Copy(w, from)
		_ = w.Close()
	}
	return nil
}

func (s *stdio) output(to io.Writer) error {
	if to == nil {
		return s.null(os.O_WRONLY)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs, s.ours = append(s.theirs, w), append(s.ours, r)
	s.drain = append(s.drain, func() error {
		_, err := io.Copy(to, r)
		_ = r.Close() // the command then learns that nobody reads any more
		return err
	})
	return nil
}

func (s *stdio) null(flag int) error {
	file, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		s.theirs = append(s.theirs, file)
	}
	return err
}

// start closes our copies of the master's ends, and copies. Nobody waits for the input's
// goroutine: a Read cannot be interrupted.
func (s *stdio) start() {
	s.closeTheirs()
	if s.feed != nil {
		go s.feed()
	}
	for _, drain := range s.drain {
		s.copying.Go(func() {
			if err := drain(); err != nil && !errors.Is(err, os.ErrClosed) {
				s.mu.Lock()
				s.failed = append(s.failed, err)
				s.mu.Unlock()
			}
		})
	}
}

func (s *stdio) closeTheirs() {
	for _, file := range s.theirs {
		_ = file.Close()
	}
	s.theirs = nil
}

// end closes all pipes; nothing is written after it.
func (s *stdio) end() {
	s.closeTheirs()
	for _, file := range s.ours {
		_ = file.Close()
	}
	s.copying.Wait()
}

func (s *stdio) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failed...)
}
