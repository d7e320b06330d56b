package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/pump"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
	"gpg-bridge/sshfwd"
)

// quiet in the environment variable background.ProxyVariable means -q.
const quiet = "quiet"

// isOff reports whether this proxy is to do without a bridge.
func isOff() bool { return os.Getenv(background.ProxyVariable) == background.ProxyOff }

// A Proxy is one run of gpg-bridge proxy.
type Proxy struct {
	ui   *ui.UI
	line target.ProxyLine
	host string // as ssh has resolved it
	port int
}

// New returns the proxy to a host and port, as ssh gives them (%h and %p), with the flags
// of line. The error says what is wrong with these.
func New(user *ui.UI, line target.ProxyLine, host, port string) (*Proxy, error) {
	number, err := strconv.Atoi(port)
	switch {
	case err != nil || number < 1 || number > 65535:
		return nil, fmt.Errorf("bad port %q", port)
	case line.Via != "" && line.JumpHosts != "":
		return nil, errors.New("--via and --jump exclude each other")
	}
	if line.Quiet || os.Getenv(background.ProxyVariable) == quiet {
		user.OmitWarnings()
	}
	line.Spec = line.Absolute() // the bridge runs in another directory
	return &Proxy{ui: user, line: line, host: host, port: number}, nil
}

// Run connects ssh, which is our parent, to the host until one of them closes the
// connection, or ctx ends. If that fails, the error is an *ui.ExitError: with the status of
// the command that was the way to the host, or ui.ExitConnection, and without a text where
// ssh or the command says why.
func (p *Proxy) Run(ctx context.Context) error {
	ctx, stop := proc.UntilParentEnds(ctx)
	defer stop()
	in, inOK := p.ui.Stdin.(*os.File)
	out, outOK := p.ui.Stdout.(*os.File)
	if !inOK || !outOK {
		return errors.New("proxy needs files as its standard input and output")
	}
	switch {
	case p.line.Via != "" || p.line.JumpHosts != "":
		return p.runCommand(ctx, in, out)
	case p.line.Fdpass || wantsSocket(in, out):
		return p.handOver(ctx, in, out)
	}
	return p.copy(ctx, in, out)
}

// copy is the proxy that dials the host and copies bytes, with a lease of the bridge from
// when it is connected.
func (p *Proxy) copy(ctx context.Context, in, out *os.File) error {
	var keys keyExchange
	bytes := pump.Pump{Watch: keys.watch}
	bridge := p.newLeaseholder(func() int64 {
		if !keys.done.Load() {
			return 0 // ssh may be asking whether it is the right host
		}
		return bytes.Sent()
	})
	err := bytes.Run(ctx, in, out, p.dial, func() { bridge.start(ctx) })
	bridge.end()
	var unreachable *sshfwd.DialError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unreachable) && ctx.Err() == nil:
		return ui.Exit(ui.ExitConnection, err)
	}
	return ui.Exit(ui.ExitConnection, nil) // ssh says that the connection was lost
}

// dial connects to the host as ssh does without a proxy, without a look at ssh_config. A
// host that goes silent must not end a session that ssh's own configuration would keep, so
// the keepalives are the system's.
func (p *Proxy) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: sshfwd.SystemKeepAlive()}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(p.host, strconv.Itoa(p.port)))
	if err != nil {
		return nil, &sshfwd.DialError{Host: p.host, Port: p.port, Err: err}
	}
	return conn, nil
}
