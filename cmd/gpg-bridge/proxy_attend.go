//go:build unix

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"
)

// attendFlags is the command line of the attendant: the proxy's, and how to know
// when the connection has ended. Only gpg-bridge itself writes it.
type attendFlags struct {
	proxy  proxyFlags
	ssh    int    // the process
	socket uint64 // its inode, 0 if that is not known
}

// newAttend makes the command of a process that holds the lease for a proxy
// which had to end: with ProxyUseFdpass ssh waits for that.
func newAttend(ui *ui) *cobra.Command {
	var flags attendFlags
	cmd := &cobra.Command{
		Use:    "attend [flags] host port",
		Short:  "hold a bridge while a connection lives that proxy has handed over",
		Hidden: true,
		Args:   exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newProxyRun(ui, &flags.proxy, cmd.CommandPath(), args)
			if err != nil {
				return err
			}
			ui.setQuiet(true) // nobody looks
			flags.run(cmd.Context(), p)
			return nil
		},
	}
	flags.proxy.addTo(cmd.Flags())
	cmd.Flags().IntVar(&flags.ssh, "ssh", 0, "the process that has the connection")
	cmd.Flags().Uint64Var(&flags.socket, "socket", 0, "the connection's inode")
	return cmd
}

func (f *attendFlags) run(ctx context.Context, p *proxyRun) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beside := p.newCompanion(nil)
	beside.start(ctx)
	awaitConnection(ctx, f.ssh, f.socket)
	beside.end()
}

// startAttendant starts it, detached. That it cannot be started costs the user
// the bridge, and not the connection.
func (p *proxyRun) startAttendant(conn *net.TCPConn) {
	self, err := os.Executable()
	if err != nil || os.Getenv(proxyVariable) == proxyOff {
		return
	}
	cmd := exec.Command(self, p.attendArgs(conn)...)
	cmd.Dir = os.TempDir()
	handOver(cmd)
	if startDetached(cmd) == nil {
		_ = cmd.Process.Release()
	}
	for _, file := range cmd.ExtraFiles {
		_ = file.Close()
	}
}

func (p *proxyRun) attendArgs(conn *net.TCPConn) []string {
	args := append([]string{"attend"}, p.args...)
	args = append(args, "--ssh", strconv.Itoa(os.Getppid()), "--socket", strconv.FormatUint(inode(conn), 10))
	return append(args, "--", p.host, strconv.Itoa(p.port))
}
