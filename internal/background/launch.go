package background

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"gpg-bridge/internal/detached"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

// ready is what the process prints on its standard output when it, or another process that is
// the bridge, can be asked for its status.
const ready = "ready"

// ProxyVariable with the value ProxyOff, in the environment of gpg-bridge proxy, has it do
// without a bridge.
const (
	ProxyVariable = "GPG_BRIDGE"
	ProxyOff      = "off"
)

// A Launcher starts bridges in the background for one target.
type Launcher struct {
	Dir     *share.Dir
	Target  *target.Target
	Spec    target.Spec // as the user gave it, without what the Target has adopted
	Pin     bool        // they stay without leases
	Over    string      // Options.Over
	Session int         // Options.Session
}

// Ensure returns a lease of the target's bridge, and starts one if there is none.
func (l *Launcher) Ensure(ctx context.Context) (*share.Lease, error) {
	return l.Dir.Ensure(ctx, l.Target.ID, l.Start)
}

// Start starts the process, detached from this one: it shares no terminal, pipe or working
// directory with us, and its messages go to a file.
func (l *Launcher) Start(ctx context.Context) error {
	process, err := detached.New(l.Dir.Path(), l.args()...)
	if err != nil {
		return err
	}
	process.Env = append(process.Env, ProxyVariable+"="+ProxyOff) // it may reach the host through our own proxy
	log, err := l.Dir.Log(l.Target.ID)
	if err != nil {
		return err
	}
	defer log.Close()
	if len(process.LeftOut) > 0 {
		ui.New(nil, nil, newLog(log, l.Target.ID)).Tell(
			"not in the environment of the bridge, since their values lead to where others may write: " + strings.Join(process.LeftOut, ", "))
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	process.Stdout, process.Stderr = childOut, log
	cmd, err := process.Start()
	_ = childOut.Close()
	if err != nil {
		return fmt.Errorf("start the bridge: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = out.Close() })()
	said, _ := bufio.NewReader(io.LimitReader(out, 64)).ReadString('\n')
	if strings.TrimSpace(said) == ready {
		go func() { _ = cmd.Wait() }() // leaves no zombie; it ends with the bridge or with us
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_ = cmd.Wait()
	return &StartError{l.Dir.LogPath(l.Target.ID)}
}

func (l *Launcher) args() []string {
	flags := target.All
	args := []string{"keep", "--id=" + l.Target.ID}
	if l.Over != "" {
		flags = target.OfAgent | target.OfHost
		args = append(args, "--over="+l.Over, "--address="+l.Target.Address, "--session="+strconv.Itoa(l.Session))
	}
	args = append(args, l.Spec.Absolute().Args(flags)...)
	if l.Pin {
		args = append(args, "--pin")
	}
	return append(args, "--", l.Target.Name)
}

// A StartError says that the bridge's process ended before it was ready.
type StartError struct{ log string }

func (e *StartError) Error() string { return "the bridge could not be started in the background" }

// Hint says where to look.
func (e *StartError) Hint() string { return "see " + e.log }
