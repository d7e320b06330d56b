package sshfwd

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/terminal"
)

// An answer is the server's answer to a request, or why there is none.
type answer struct {
	ok  bool
	err error
}

// send sends a request on a channel and waits for the answer. x/crypto sends one such
// request at a time on a channel; the next one waits.
func (c *Client) send(ch ssh.Channel, kind string, payload []byte) answer {
	asked := time.Now()
	ok, err := ch.SendRequest(kind, true, payload)
	c.answers.note(asked, err)
	return answer{ok, err}
}

// An askedPTY is a terminal that the server was asked for.
type askedPTY struct {
	size   terminal.WindowSize // that was asked for
	answer <-chan answer       // receives one, unless the channel could not be opened
}

func ptyRequest(pty *terminal.PTY) []byte {
	modes := string(pty.Modes)
	if modes == "" {
		modes = string([]byte{terminal.TtyOpEnd})
	}
	return ssh.Marshal(struct {
		Term                         string
		Cols, Rows, XPixels, YPixels uint32
		Modes                        string
	}{pty.Term, pty.Cols, pty.Rows, pty.XPixels, pty.YPixels, modes})
}

// requestPTY asks for the terminal, unless that was done ahead. It waits for the answer only
// if req.PTYRefused is set.
func (s *session) requestPTY(ctx context.Context, req SessionRequest) error {
	if err := s.askPTY(req); err != nil {
		return fmt.Errorf("start a session: %w", err)
	}
	if req.PTYRefused == nil || s.pty == nil {
		return nil
	}
	ok, err := s.await(ctx, s.pty.answer)
	if ok || err != nil {
		return err
	}
	s.isPTYRefused = true
	return req.PTYRefused()
}

func (s *session) askPTY(req SessionRequest) error {
	var err error
	switch {
	case req.PTY == nil:
	case s.pty != nil:
		if s.pty.size != req.PTY.WindowSize {
			_, err = s.ch.SendRequest("window-change", false, ssh.Marshal(req.PTY.WindowSize))
		}
	case req.PTYRefused != nil:
		s.pty = &askedPTY{answer: s.ask("pty-req", ptyRequest(req.PTY))}
	default:
		_, err = s.ch.SendRequest("pty-req", false, ptyRequest(req.PTY))
	}
	return err
}

// ask sends a request, in a goroutine that ends with the answer or the channel.
func (s *session) ask(kind string, payload []byte) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- s.client.send(s.ch, kind, payload) }()
	return answers
}

// await waits for an answer and returns whether the request was granted.
func (s *session) await(ctx context.Context, answers <-chan answer) (ok bool, err error) {
	select {
	case a := <-answers:
		switch {
		case a.err != nil && ctx.Err() != nil:
			return false, context.Cause(ctx)
		case a.err != nil:
			return false, fmt.Errorf("start a session: %w", link.ErrNoExitStatus)
		}
		return a.ok, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// request sends a request that must be granted.
func (s *session) request(ctx context.Context, kind string, payload []byte) error {
	ok, err := s.await(ctx, s.ask(kind, payload))
	if err == nil && !ok {
		return &RequestRefusedError{Request: kind}
	}
	return err
}
