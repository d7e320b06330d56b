package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gpg-bridge/internal/pump"
	"gpg-bridge/sshfwd"
)

const proxyLong = `proxy is for ssh_config. It connects ssh to the host, as ssh would itself, and
beside that it sees to a bridge in the background, which all connections to the
host share:

  Host dev
    ProxyCommand gpg-bridge proxy --alias %n --user %r %h %p

gpg-bridge setup writes these lines. Nothing about the bridge can delay or break
the connection. The bridge logs in by itself, and asks nothing; where it cannot,
one line says so, once a minute at most. GPG_BRIDGE=quiet in the environment
keeps it to itself, and GPG_BRIDGE=off does without the bridge.`

// proxyVariable is the environment variable that proxyLong tells of.
const (
	proxyVariable = "GPG_BRIDGE"
	proxyQuiet    = "quiet"
	proxyOff      = "off"
)

// proxyRun is one run of gpg-bridge proxy.
type proxyRun struct {
	ui    *ui
	flags *proxyFlags
	host  string
	port  int
	args  []string // the flags that are about the bridge
}

func newProxy(ui *ui) *cobra.Command {
	var flags proxyFlags
	cmd := &cobra.Command{
		Use:   "proxy [flags] host port",
		Short: "for ssh_config's ProxyCommand: plain ssh, scp, git and editors gain the agent",
		Long:  proxyLong,
		Args:  exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newProxyRun(ui, &flags, cmd.CommandPath(), args)
			if err != nil {
				return err
			}
			p.args = bridgeArgs(cmd.Flags())
			return p.run(cmd.Context())
		},
	}
	flags.addTo(cmd.Flags())
	flags.addPumpTo(cmd.Flags())
	return cmd
}

func newProxyRun(ui *ui, flags *proxyFlags, command string, args []string) (*proxyRun, error) {
	port, err := strconv.Atoi(args[1])
	switch {
	case err != nil || port < 1 || port > 65535:
		return nil, &usageError{command, fmt.Errorf("bad port %q", args[1])}
	case flags.via != "" && flags.jump != "":
		return nil, &usageError{command, errors.New("--via and --jump exclude each other")}
	}
	ui.setQuiet(flags.quiet || os.Getenv(proxyVariable) == proxyQuiet)
	// The bridge, and the attendant, live in another directory.
	flags.config, flags.local.agentSocket = absolute(flags.config), absolute(flags.local.agentSocket)
	return &proxyRun{ui: ui, flags: flags, host: args[0], port: port}, nil
}

// bridgeArgs are the flags that were given and that are about the bridge.
func bridgeArgs(given *pflag.FlagSet) []string {
	var own proxyFlags
	bridge := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.addTo(bridge)
	var args []string
	given.Visit(func(f *pflag.Flag) {
		if bridge.Lookup(f.Name) != nil {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// run connects ssh to the host, until one of them has enough.
func (p *proxyRun) run(ctx context.Context) error {
	ctx, stop := untilParentEnds(ctx)
	defer stop()
	in, inOK := p.ui.stdin.(*os.File)
	out, outOK := p.ui.stdout.(*os.File)
	if !inOK || !outOK {
		return errors.New("proxy needs files as its standard input and output")
	}
	switch {
	case p.flags.via != "" || p.flags.jump != "":
		return p.runInner(ctx, in, out)
	case p.flags.fdpass || pump.IsSocketPair(in, out) && parentName() == "ssh":
		return p.pass(ctx, in, out)
	}
	return p.pump(ctx, in, out)
}

// pump is the proxy that stays.
func (p *proxyRun) pump(ctx context.Context, in, out *os.File) error {
	var keys keyExchange
	bytes := pump.Pump{Watch: keys.watch}
	beside := p.newCompanion(func() int64 {
		if !keys.done.Load() {
			return 0 // ssh may be asking whether it is the right host
		}
		return bytes.Sent()
	})
	err := bytes.Run(ctx, in, out, p.dial, func() { beside.start(ctx) })
	beside.end()
	var unreachable *sshfwd.DialError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unreachable) && ctx.Err() == nil:
		return &exitError{exitConnection, err}
	}
	return &exitError{exitConnection, nil} // ssh says that the connection was lost
}

// dial connects to the host as ssh without a proxy does, but for what takes a
// look at ssh_config. A host that goes silent must not end a session that ssh's
// own configuration would keep: of keepalives, only the system's are used.
func (p *proxyRun) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(p.host, strconv.Itoa(p.port)))
	if err != nil {
		return nil, &sshfwd.DialError{Host: p.host, Port: p.port, Err: err}
	}
	return conn, nil
}

// endGrace is what the companion gets to end. ssh does not wait for it.
const endGrace = 50 * time.Millisecond
