package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/remoteside"
)

const connectLong = `connect speaks with the local agent on stdin and stdout, as one gpg would on its
socket: guarded, and restricted as every connection from a host is. It is for
socat and its kin, for WSL, and for a look:

  echo 'GETINFO version' | gpg-bridge connect`

func newConnect(user *ui.UI) *cobra.Command {
	spec := target.NewSpec("")
	var verbosity int
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "one conversation with the local agent, on stdin and stdout",
		Long:  connectLong,
		Args:  exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect(cmd.Context(), user, spec, verbosity)
		},
	}
	spec.AddFlags(cmd.Flags(), target.OfAgent)
	cmd.Flags().CountVarP(&verbosity, "verbose", "v", "say what happens")
	return cmd
}

func connect(ctx context.Context, user *ui.UI, spec target.Spec, verbosity int) error {
	if verbosity > 0 {
		user.SetLevel(usertext.Debug1)
	}
	var last lastReport
	server := remoteside.NewServer(remoteside.Config{
		Connect:   spec.Local().Connect,
		Log:       user.Log(),
		Observers: []remoteside.Observer{&last},
	})
	server.ServeConn(ctx, newStdio(user.Stdin, user.Stdout))
	if last.report.Unreachable != nil {
		return last.report.Unreachable
	}
	return last.report.Cause
}

// lastReport remembers how the session ended.
type lastReport struct {
	remoteside.NopObserver
	report remoteside.Report
}

// Ended is called once.
func (l *lastReport) Ended(r remoteside.Report) { l.report = r }

// stdio is stdin and stdout as one connection.
type stdio struct {
	io.Reader
	io.Writer
	stop func() error
}

// newStdio reads stdin in a goroutine that may live as long as the process: a read of a terminal
// or a file cannot be interrupted, and must not keep the session alive.
func newStdio(stdin io.Reader, stdout io.Writer) *stdio {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, stdin)
		_ = w.CloseWithError(err) // nil is EOF
	}()
	return &stdio{Reader: r, Writer: stdout, stop: r.Close}
}

// Close ends reading. stdout stays open until the process ends.
func (s *stdio) Close() error { return s.stop() }
