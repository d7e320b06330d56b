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
	"gpg-bridge/sshfwd/config"
)

// Options say which bridge to keep up.
type Options struct {
	Spec      target.Spec
	ID        string // of the target; "" to make it of the Spec
	Pin       bool   // stay without leases, until somebody ends it
	UI        *ui.UI // its Stdout gets ready when the process can be asked for its status
	Verbosity int
}

// Run is the bridge until nobody needs it any more.
func Run(ctx context.Context, o Options) error {
	o.UI.Redirect(newLog(o.UI.Stderr, o.ID))
	home := target.AskHome(ctx)
	defer home.Stop()
	t, err := resolve(ctx, o, home, true)
	if err != nil {
		return err
	}
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	p := &process{
		service: serve.New(serve.Options{
			Target: t, UI: o.UI, Verbosity: o.Verbosity, Kind: share.Background, LoginShell: true,
		}),
		dir: dir, pin: o.Pin,
		ready: sync.OnceFunc(func() { sayReady(o.UI.Stdout) }),
	}
	p.master = newMaster(ctx, p.service, !o.Pin)
	defer p.master.close()
	return p.run(ctx)
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
