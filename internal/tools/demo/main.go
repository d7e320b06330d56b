// Command demo shows what gpg-bridge is for, with nothing of the user's
// touched: it makes a key in a throw-away GNUPGHOME with an agent of its own,
// starts an SSH server on 127.0.0.1 that stands for a host with another
// GNUPGHOME, and lets git sign a commit there through `gpg-bridge ssh`. It
// leaves nothing behind.
//
// Usage: demo PATH-OF-gpg-bridge
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// timeLimit is far longer than the demo takes, and ends one that hangs.
const timeLimit = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: demo PATH-OF-gpg-bridge")
	}
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	program, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	machines, err := setUp(ctx)
	if err != nil {
		return errors.Join(err, machines.tearDown())
	}
	err = machines.show(ctx, program)
	return errors.Join(err, machines.tearDown())
}
