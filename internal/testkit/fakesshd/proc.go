package fakesshd

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// leftoverOutput is how long a process's output is read after its end, if a child of it
// still has the pipe open.
const leftoverOutput = time.Second

// hangUpGrace is how long a process may take to end after SIGHUP.
const hangUpGrace = 2 * time.Second

// A process runs in a session. Its channel is read and written by goroutines that the
// connection owns and that end with the process.
type process struct {
	cmd     *exec.Cmd
	session *session
	in      io.WriteCloser // the process's stdin, or the pty
	replied chan struct{}  // closed when output may be sent
	once    sync.Once
	ended   chan struct{} // closed when Wait has returned
	output  sync.WaitGroup
}

// startProcess starts cmd on pipes, or on the session's pty.
func startProcess(s *session, cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, session: s, replied: make(chan struct{}), ended: make(chan struct{})}
	cmd.WaitDelay = leftoverOutput
	setProcAttr(cmd, s.pty != nil)
	start := p.startOnPipes
	if s.pty != nil {
		start = p.startOnPTY
	}
	if err := start(); err != nil {
		return nil, err
	}
	s.conn.wg.Go(p.copyInput)
	return p, nil
}

func (p *process) startOnPipes() error {
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	p.in = stdin
	p.cmd.Stdout = afterReply{p, p.session.ch}
	p.cmd.Stderr = afterReply{p, p.session.ch.Stderr()}
	return p.cmd.Start()
}

func (p *process) startOnPTY() error {
	pty := p.session.pty
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pty.slave, pty.slave, pty.slave
	p.in = pty.master
	if err := p.cmd.Start(); err != nil {
		return err
	}
	_ = pty.slave.Close() // so that reading the master ends with the last process on the terminal
	p.output.Go(func() { _, _ = io.Copy(afterReply{p, p.session.ch}, pty.master) })
	return nil
}

// copyInput feeds the process until the client sends EOF or the channel ends. With a pty the
// client's EOF is ignored: a terminal has a key for that.
func (p *process) copyInput() {
	_, _ = io.Copy(p.in, p.session.ch)
	if p.session.pty == nil {
		_ = p.in.Close()
	}
}

// copyOutput lets output through, once the reply to the request was sent.
func (p *process) copyOutput() { p.once.Do(func() { close(p.replied) }) }

// afterReply is a writer that waits for copyOutput.
type afterReply struct {
	p *process
	w io.Writer
}

func (a afterReply) Write(data []byte) (int, error) {
	select {
	case <-a.p.replied:
		return a.w.Write(data)
	case <-a.p.session.conn.ctx.Done():
		return 0, os.ErrClosed
	}
}

// wait returns how the process ended, once its output has been sent. It kills the process when
// the connection ends.
func (p *process) wait() error {
	stop := closeWhenDone(p.session.conn.ctx, closerFunc(func() { signalGroup(p.cmd, syscall.SIGKILL) }))
	err := p.cmd.Wait()
	close(p.ended)
	select {
	case <-p.replied: // the reply to exec comes before its exit-status
	case <-p.session.conn.ctx.Done():
	}
	if pty := p.session.pty; pty != nil {
		timer := time.AfterFunc(leftoverOutput, pty.close)
		p.output.Wait()
		timer.Stop()
		pty.close()
	}
	stop() // ends whatever is left in the process group, too
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// hangUp tells the process that its terminal is gone, and kills it if that
// does not end it.
func (p *process) hangUp() {
	p.copyOutput()
	select {
	case <-p.ended:
		return
	default:
	}
	signalGroup(p.cmd, syscall.SIGHUP)
	timer := time.NewTimer(hangUpGrace)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		signalGroup(p.cmd, syscall.SIGKILL)
	}
}

// signal delivers a signal by its name in RFC 4254 section 6.10.
func (p *process) signal(name string) bool {
	number, ok := signalNumber(name)
	if ok {
		signalGroup(p.cmd, number)
	}
	return ok
}

type closerFunc func()

func (f closerFunc) Close() error {
	f()
	return nil
}
