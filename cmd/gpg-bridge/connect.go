package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"gpg-bridge/remoteside"
)

const connectLong = `connect speaks with the local agent on stdin and stdout, as one gpg would on its
socket: guarded, and restricted as every connection from a host is. It is for
socat and its kin, for WSL, and for a look:

  echo 'GETINFO version' | gpg-bridge connect`

func newConnect(ui *ui) *cobra.Command {
	var local localFlags
	var verbosity int
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "one conversation with the local agent, on stdin and stdout",
		Long:  connectLong,
		Args:  exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect(cmd.Context(), ui, &local, verbosity)
		},
	}
	local.addTo(cmd.Flags())
	cmd.Flags().CountVarP(&verbosity, "verbose", "v", "say what happens")
	return cmd
}

func connect(ctx context.Context, ui *ui, flags *localFlags, verbosity int) error {
	var report remoteside.Report
	server := remoteside.NewServer(remoteside.Config{
		Connect: flags.local().Connect,
		Log:     ui.log(verbosity),
		Ended:   func(r remoteside.Report) { report = r },
	})
	server.ServeConn(ctx, newStdio(ui.stdin, ui.stdout))
	if report.Unreachable != nil {
		return report.Unreachable
	}
	return report.Cause
}

// stdio is stdin and stdout as one connection.
type stdio struct {
	io.Reader
	io.Writer
	stop func() error
}

// newStdio reads stdin in a goroutine that belongs to the process: a read of a
// terminal or of a file cannot be ended, and must not keep the session alive.
func newStdio(stdin io.Reader, stdout io.Writer) *stdio {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, stdin)
		_ = w.CloseWithError(err) // nil is EOF
	}()
	return &stdio{Reader: r, Writer: stdout, stop: r.Close}
}

// Close ends reading. stdout is the process's own, and ends with it.
func (s *stdio) Close() error { return s.stop() }
