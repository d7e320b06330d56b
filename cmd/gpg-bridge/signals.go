package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignalled returns a context that ends at the first SIGINT, SIGTERM or
// SIGHUP, with a cause that names it; a second one ends the process as it would
// have without us. SIGPIPE is taken, so that a closed stdout becomes an error
// of the write and not the end of a process with a socket to remove.
func untilSignalled(parent context.Context) (context.Context, context.CancelFunc) {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	again := context.AfterFunc(ctx, stop)
	return ctx, func() {
		again()
		stop()
		signal.Stop(pipe)
	}
}
