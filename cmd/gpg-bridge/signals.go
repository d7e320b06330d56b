package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// untilSignalled returns a context that ends at the first SIGINT, SIGTERM or
// SIGHUP, with a cause that names it; a second one ends the process as it would
// have without us. Those that were ignored when the program started, as nohup
// wants it, stay ignored (client_loop in OpenSSH's clientloop.c does the same).
// SIGPIPE is taken, so that a closed stdout becomes an error of the write and
// not the end of a process with a socket to remove.
func untilSignalled(parent context.Context) (context.Context, context.CancelFunc) {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	ctx, stop := notifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	again := context.AfterFunc(ctx, stop)
	return ctx, func() {
		again()
		stop()
		signal.Stop(pipe)
	}
}

// notifyContext is signal.NotifyContext, for those that are not ignored.
func notifyContext(parent context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	signals = slices.DeleteFunc(signals, signal.Ignored)
	if len(signals) == 0 { // none would mean all
		return context.WithCancel(parent)
	}
	return signal.NotifyContext(parent, signals...)
}
