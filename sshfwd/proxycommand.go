package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"gpg-bridge/internal/proc"
)

// hangupGrace is how long a ProxyCommand has to end after it was asked to.
const hangupGrace = 2 * time.Second

// openProxyCommand runs the ProxyCommand (ssh_proxy_connect in OpenSSH's
// sshconnect.c).
func (d *dialer) openProxyCommand(ctx context.Context) (*route, error) {
	command, err := d.config.ProxyCommandLine()
	if err != nil {
		return nil, err
	}
	proxy := fmt.Sprintf("ProxyCommand %q", command)
	d.log.Debug("running", "proxycommand", command)
	open := d.runProxyCommand
	if d.config.ProxyUseFdpass {
		open = d.runProxyDialer
	}
	r, err := open(ctx, command)
	if err != nil {
		return nil, &ProxyError{Proxy: proxy, Err: err, IsWay: true}
	}
	r.proxy = proxy
	return r, nil
}

// runProxyCommand speaks with the command over its stdin and stdout.
func (d *dialer) runProxyCommand(_ context.Context, command string) (*route, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), in.Close())
	}
	p, err := d.startProxy(command, childIn, childOut)
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	conn := &commandConn{process: p, in: in, out: out, proxied: proxied{d.config.Hostname}}
	return &route{Conn: conn, finish: conn.finish}, nil
}

// A proxyProcess is a running ProxyCommand. It belongs to a route. Its goroutine only waits
// for the process.
type proxyProcess struct {
	cmd    *exec.Cmd
	wg     sync.WaitGroup
	exited chan struct{}
	err    error // set when exited is closed
}

func (d *dialer) startProxy(command string, stdin, stdout *os.File) (*proxyProcess, error) {
	cmd, err := proc.Shell(command)
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, d.options.Stderr
	cmd.WaitDelay = hangupGrace
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &proxyProcess{cmd: cmd, exited: make(chan struct{})}
	p.wg.Go(func() {
		p.err = cmd.Wait()
		close(p.exited)
	})
	return p, nil
}

// end waits for the process, which was asked to end, and kills it if it does not.
func (p *proxyProcess) end() {
	timer := time.NewTimer(hangupGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
	}
	p.wg.Wait()
}

// A commandConn is the connection that a ProxyCommand makes. Close ends reads and writes.
type commandConn struct {
	process *proxyProcess
	in, out *os.File
	proxied

	mu     sync.Mutex
	broken bool // the process closed its end before we closed ours
	closed bool
	unread error // why it takes no more
}

// unreadGrace is how long the process may still say something when it takes no more: no
// request would be answered, and what says why may be on its way.
const unreadGrace = time.Second

func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		err = c.unread
		c.mu.Unlock()
	}
	c.note(err)
	return n, err
}

func (c *commandConn) Write(p []byte) (int, error) {
	n, err := c.in.Write(p)
	c.note(err)
	if err != nil {
		c.mu.Lock()
		c.unread = err
		c.mu.Unlock()
		_ = c.out.SetReadDeadline(time.Now().Add(unreadGrace))
	}
	return n, err
}

func (c *commandConn) note(err error) {
	if err != nil {
		c.mu.Lock()
		c.broken = c.broken || !c.closed
		c.mu.Unlock()
	}
}

// Close asks the process to end, as ssh does: by SIGHUP, which changes nothing for a process
// that has ended, and then by the end of its input. It does not wait.
func (c *commandConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	proc.HangUp(c.process.cmd.Process)
	return errors.Join(c.in.Close(), c.out.Close())
}

// finish waits for the end of the process. It returns why the process ended by itself, nil
// if we ended it.
func (c *commandConn) finish() error {
	c.process.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	var exit *exec.ExitError
	if c.broken && errors.As(c.process.err, &exit) && endedByItself(exit) {
		return fmt.Errorf("it ended with %w", c.process.err)
	}
	return nil
}

// endedByItself reports whether we did not end the process. SIGHUP and SIGKILL may be ours;
// another signal, such as that of a Ctrl-C, is not.
func endedByItself(exit *exec.ExitError) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	return exit.Exited() || ok && status.Signaled() && status.Signal() != syscall.SIGHUP && status.Signal() != syscall.SIGKILL
}
