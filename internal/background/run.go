package background

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// Options say which bridge to keep up.
type Options struct {
	Spec      target.Spec
	ID        string // of the target; "" to make it of the Spec
	Pin       bool   // stay without leases, until somebody ends it
	Over      string // a control socket: use this connection only, and end with it; or ""
	Address   string // of the target, with Over
	Session   int    // with Over: a process with which to end, too; 0 for none
	UI        *ui.UI // its Stdout gets ready when the process can be asked for its status
	Verbosity int
}

// Run is the bridge until nobody needs it any more.
func Run(ctx context.Context, o Options) error {
	o.UI.Redirect(newLog(o.UI.Stderr, o.ID))
	t, err := targetOf(ctx, o)
	if err != nil {
		return err
	}
	ctx, stop := untilEnds(ctx, o.Session)
	defer stop()
	if o.Verbosity > 0 {
		o.UI.SetLevel(usertext.Debug1)
	}
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	p := &process{
		service: serve.New(serve.Options{
			Target: t, UI: o.UI, Kind: share.Background, LoginShell: true,
		}),
		dir: dir, pin: o.Pin, over: o.Over != "",
		ready: sync.OnceFunc(func() { sayReady(o.UI.Stdout) }),
	}
	p.master = newMaster(ctx, p.service, !o.Pin)
	defer p.master.close()
	return p.run(ctx)
}

// targetOf returns the target of a process without a terminal.
func targetOf(ctx context.Context, o Options) (*target.Target, error) {
	if o.Over != "" {
		return overTarget(o)
	}
	home := target.AskHome(ctx)
	defer home.Stop()
	return resolve(ctx, o, home, true)
}

// resolve finds out what the Spec leads to. detached: this process does not run in its user's
// working directory. Then its own --via and ID count, which whoever started it has found out
// in that directory.
func resolve(ctx context.Context, o Options, home *target.Home, detached bool) (*target.Target, error) {
	options := o.Spec.SSH()
	options.BatchMode, options.Detached = true, detached
	t, err := target.Resolve(ctx, o.Spec, options, home)
	if err != nil {
		return nil, err
	}
	for _, warning := range t.Config.Warnings {
		o.UI.Warn(errors.New(warning))
	}
	t.Config.Forwards = config.Forwards{} // the user's own forwards are their ssh's business
	if o.Spec.Via != "" {
		t.Config.ProxyCommand, t.Config.ProxyJump = o.Spec.Via, ""
	}
	t.ID = cmp.Or(o.ID, t.ID)
	return t, nil
}

// sayReady tells whoever started us that we can be asked.
func sayReady(out io.Writer) {
	_, _ = fmt.Fprintln(out, ready)
	if file, ok := out.(*os.File); ok {
		_ = file.Close()
	}
}
