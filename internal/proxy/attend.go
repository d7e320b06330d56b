//go:build unix

package proxy

import (
	"context"
	"net"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"gpg-bridge/internal/detached"
	"gpg-bridge/internal/private"
	"gpg-bridge/internal/target"
)

// An Attendant is a process that holds the lease of the bridge for a proxy that has handed
// its connection over, and so had to end.
type Attendant struct {
	Line target.ProxyLine // the proxy's

	ssh   int    // the process that has the connection
	inode uint64 // of the connection's socket, 0 if that is not known
}

// NewAttendant is one without any flags.
func NewAttendant() Attendant { return Attendant{Line: target.NewProxyLine()} }

// AddFlags adds the flags of the hidden command of an attendant, which only startAttendant
// writes.
func (a *Attendant) AddFlags(to *pflag.FlagSet) {
	a.Line.Spec.AddFlags(to, target.ForProxy)
	to.IntVar(&a.ssh, "ssh", a.ssh, "the process that has the connection")
	to.Uint64Var(&a.inode, "socket", a.inode, "the connection's inode")
}

// Run holds the lease until the connection has ended, or ctx. It tells the user nothing.
func (a *Attendant) Run(ctx context.Context, p *Proxy) {
	p.ui.OmitWarnings()
	bridge := p.newLeaseholder(nil)
	bridge.start(ctx)
	awaitConnection(ctx, a.ssh, a.inode)
	bridge.end()
}

// startAttendant starts an attendant for the connection that our parent has got. If it
// cannot be started, the user has no bridge, and still the connection.
func (p *Proxy) startAttendant(conn *net.TCPConn) {
	if isOff() {
		return
	}
	dir, err := private.Runtime()
	if err != nil {
		return
	}
	defer dir.Close()
	process, err := detached.New(dir.Path(), p.attendArgs(conn)...)
	if err != nil {
		return
	}
	process.ExtraFiles = parentHandle()
	if cmd, err := process.Start(); err == nil {
		_ = cmd.Process.Release()
	}
	for _, file := range process.ExtraFiles {
		_ = file.Close()
	}
}

func (p *Proxy) attendArgs(conn *net.TCPConn) []string {
	args := append([]string{"attend"}, p.line.Args(target.ForProxy)...)
	args = append(args, "--ssh", strconv.Itoa(os.Getppid()), "--socket", strconv.FormatUint(inode(conn), 10))
	return append(args, "--", p.host, strconv.Itoa(p.port))
}
