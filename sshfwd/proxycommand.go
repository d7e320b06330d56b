package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// hangupGrace is what a ProxyCommand gets to end after it was asked to.
const hangupGrace = 2 * time.Second

// openProxyCommand runs the ProxyCommand (ssh_proxy_connect in OpenSSH's
// sshconnect.c).
func (c *Config) openProxyCommand(ctx context.Context, log *slog.Logger) (*route, error) {
	command, err := c.proxyCommand()
	if err != nil {
		return nil, err
	}
	proxy := fmt.Sprintf("ProxyCommand %q", command)
	log.Debug("running", "proxycommand", command)
	open := c.runProxyCommand
	if c.ProxyUseFdpass {
		open = c.runProxyDialer
	}
	r, err := open(ctx, command)
	if err != nil {
		return nil, &ProxyError{Proxy: proxy, Err: err}
	}
	r.proxy = proxy
	return r, nil
}

// proxyCommand expands the tokens (expand_proxy_command). The names that came
// with the command line were checked (checkNames); those that HostName and User
// made of them are checked here, since a shell will read them.
func (c *Config) proxyCommand() (string, error) {
	alias := c.HostKeyAlias
	if alias == "" {
		alias = c.OriginalHost
	}
	for _, name := range []string{c.Hostname, c.OriginalHost, alias} {
		if !validHostname(name) || !safeInCommand(name) {
			return "", &ConfigError{
				Problem: fmt.Sprintf("the host name %q may not stand in a ProxyCommand", name),
				Advice:  "correct HostName or HostKeyAlias in ssh_config",
			}
		}
	}
	if !safeInCommand(c.User) {
		return "", &ConfigError{Problem: fmt.Sprintf("the user name %q may not stand in a ProxyCommand", c.User), Advice: "correct User in ssh_config"}
	}
	values := map[byte]string{
		'%': "%", 'h': c.Hostname, 'k': alias, 'n': c.OriginalHost, 'p': strconv.Itoa(c.Port), 'r': c.User,
	}
	return expand(c.ProxyCommand, func(t byte) (string, error) {
		value, ok := values[t]
		if !ok {
			return "", fmt.Errorf("unknown token %q", "%"+string(rune(t)))
		}
		return value, nil
	}, false)
}

// runProxyCommand speaks with the command over its stdin and stdout.
func (c *Config) runProxyCommand(_ context.Context, command string) (*route, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), in.Close())
	}
	p, err := c.startProxy(command, childIn, childOut)
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	conn := &commandConn{process: p, in: in, out: out, addr: proxyAddr(c.Hostname)}
	return &route{Conn: conn, finish: conn.finish}, nil
}

// A proxyProcess is a running ProxyCommand. It belongs to a route; its
// goroutine only waits for it.
type proxyProcess struct {
	cmd    *exec.Cmd
	wg     sync.WaitGroup
	exited chan struct{}
	err    error // set when exited is closed
}

func (c *Config) startProxy(command string, stdin, stdout *os.File) (*proxyProcess, error) {
	cmd, err := shellCommand(command)
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, c.Stderr
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

// end waits for the process, which was asked to end, and makes it end if it
// does not.
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

// A commandConn is the connection that a ProxyCommand makes. There are no
// deadlines on it: Close ends reads and writes.
type commandConn struct {
	process *proxyProcess
	in, out *os.File
	addr    proxyAddr

	mu     sync.Mutex
	broken bool // it closed its end before we closed ours
	closed bool
}

func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	c.note(err)
	return n, err
}

func (c *commandConn) Write(p []byte) (int, error) {
	n, err := c.in.Write(p)
	c.note(err)
	return n, err
}

func (c *commandConn) note(err error) {
	if err != nil {
		c.mu.Lock()
		c.broken = c.broken || !c.closed
		c.mu.Unlock()
	}
}

// Close asks the process to end, as ssh does: SIGHUP first (sent to a process
// that has ended it changes nothing), then the end of its input. It does not
// wait.
func (c *commandConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	hangUp(c.process.cmd.Process)
	return errors.Join(c.in.Close(), c.out.Close())
}

// finish returns when the process has ended, after Close or by itself, with
// the error it ended with by itself.
func (c *commandConn) finish() error {
	c.process.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	var exit *exec.ExitError
	if c.broken && errors.As(c.process.err, &exit) && exit.Exited() {
		return fmt.Errorf("it ended with %w", c.process.err)
	}
	return nil
}

func (c *commandConn) LocalAddr() net.Addr  { return proxyAddr("") }
func (c *commandConn) RemoteAddr() net.Addr { return c.addr }

func (c *commandConn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (c *commandConn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (c *commandConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }
