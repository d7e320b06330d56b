// Command gpg-bridge lets gpg on a host that is reached by SSH use the
// gpg-agent of the machine in front of you: sign and decrypt there, while the
// secret keys stay here. See README.md.
package main

import (
	"context"
	"io"
	"os"
	"runtime"
)

func main() {
	// What passes a bridge is handed from goroutine to goroutine, and little is
	// done to it: on one processor the next one goes on where the last one
	// stopped, on two it has to be woken up (docs/performance.md).
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Main runs the program and returns its exit code: the remote command's where
// there is one, 255 when a connection failed (as ssh, ssh(1) EXIT STATUS), 2
// for usage, 1 for anything else. It prints nothing on stdout that was not
// asked for.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ui := newUI(stdin, stdout, stderr)
	root := newRoot(ui)
	root.SetArgs(args)
	ctx, stop := untilSignalled(ctx)
	defer stop()
	return ui.exitCode(root.ExecuteContext(ctx))
}
