// Command gpg-bridge lets gpg on a host that is reached by SSH use the
// gpg-agent of the machine in front of you: sign and decrypt there, while the
// secret keys stay here. See README.md.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"gpg-bridge/internal/realssh"
	"gpg-bridge/internal/signals"
	"gpg-bridge/internal/ui"
)

func main() {
	// Data that passes a bridge is handed from goroutine to goroutine, and each does
	// little with it. On one processor the next goroutine runs at once; on two it would
	// have to be woken up (docs/performance.md).
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	code, by := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if by != nil {
		signals.DieOf(by)
	}
	os.Exit(code)
}

// Main runs the program and returns its exit code: the remote command's where
// there is one, 255 when a connection failed (as ssh, ssh(1) EXIT STATUS), 2
// for usage, 1 for anything else. It prints nothing on stdout that was not
// asked for.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	code, _ := run(ctx, args, stdin, stdout, stderr)
	return code
}

// run is Main, and also returns the signal by which the process is to end; nil for none.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, by os.Signal) {
	user := ui.New(stdin, stdout, stderr)
	root := newRoot(user)
	root.SetArgs(args)
	ctx, stop := signals.Until(realssh.Remembering(ctx), user.CancelPrompt)
	defer stop()
	err := root.ExecuteContext(ctx)
	if died, ok := errors.AsType[*signals.DiedError](err); ok {
		return ui.ExitConnection, died.Signal
	}
	return user.ExitCode(err), nil
}
