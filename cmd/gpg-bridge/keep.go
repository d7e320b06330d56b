package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd"
)

// keepReady is what a bridge in the background says on its standard output when
// it, or another process, can be asked how it does.
const keepReady = "ready"

// keepFlags is the command line of the bridge in the background. Only gpg-bridge
// itself writes it.
type keepFlags struct {
	ssh    sshFlags
	id     string
	via    string
	linger time.Duration
	pin    bool
}

func newKeep(ui *ui) *cobra.Command {
	var flags keepFlags
	cmd := &cobra.Command{
		Use:    "keep [flags] host",
		Short:  "be the bridge in the background; gpg-bridge up and proxy start it",
		Hidden: true,
		Args:   exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.ssh.options.Destination = args[0]
			flags.ssh.options.BatchMode, flags.ssh.noShell = true, true
			return flags.run(cmd.Context(), ui)
		},
	}
	flags.ssh.addTo(cmd.Flags())
	cmd.Flags().StringVar(&flags.id, "id", "", "the target's `ID`")
	cmd.Flags().StringVar(&flags.via, "via", "", "a ProxyCommand in the place of ssh_config's")
	cmd.Flags().DurationVar(&flags.linger, "linger", defaultLinger, "how long to stay without leases")
	cmd.Flags().BoolVar(&flags.pin, "pin", false, "stay without leases")
	return cmd
}

// run is the bridge until nobody needs it any more.
func (f *keepFlags) run(ctx context.Context, ui *ui) error {
	ui.stderr = newKeepLog(ui.stderr)
	r := &sshRun{ui: ui, flags: &f.ssh, background: true}
	if err := r.resolve(ctx); err != nil {
		return err
	}
	r.config.Forwards = sshfwd.ForwardSpecs{} // the user's own are for the user's ssh
	if f.via != "" {
		r.config.ProxyCommand, r.config.ProxyJump = f.via, ""
	}
	if f.id != "" {
		r.target.id = f.id
	}
	r.master = newMaster(ctx, r, !f.pin)
	defer r.master.close()
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	s := &standing{keep: f, run: r, dir: dir, ready: sync.OnceFunc(func() { sayReady(ui.stdout) })}
	return s.stand(ctx)
}

// sayReady lets go of whoever started us.
func sayReady(out io.Writer) {
	_, _ = fmt.Fprintln(out, keepReady)
	if file, ok := out.(*os.File); ok {
		_ = file.Close()
	}
}

// A keeper starts bridges in the background for one target.
type keeper struct {
	dir    *share.Dir
	target target
	flags  *proxyFlags
	port   int
	pin    bool

	identities []string // -i
	options    []string // -o
}

// ensure returns a lease of the target's bridge, which it starts if there is
// none.
func (k *keeper) ensure(ctx context.Context) (*share.Lease, error) {
	return k.dir.Ensure(ctx, k.target.id, k.start)
}

// start starts the process, detached from this one: it has no terminal, no
// pipe and no directory of ours, and its messages go to a file.
func (k *keeper) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := k.dir.Log(k.target.id)
	if err != nil {
		return err
	}
	defer log.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(self, k.args()...)
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), proxyVariable+"="+proxyOff) // its way to the host may be a proxy of ours
	cmd.Stdout, cmd.Stderr = childOut, log
	err = startDetached(cmd)
	_ = childOut.Close()
	if err != nil {
		return fmt.Errorf("start the bridge: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = out.Close() })()
	said, _ := bufio.NewReader(io.LimitReader(out, 64)).ReadString('\n')
	if strings.TrimSpace(said) == keepReady {
		go func() { _ = cmd.Wait() }() // leaves no zombie; it ends with the bridge or with us
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_ = cmd.Wait()
	return &keepError{k.dir.LogPath(k.target.id)}
}

func (k *keeper) args() []string {
	f := k.flags
	args := []string{"keep", "--id", k.target.id, "--linger", f.linger.String()}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("--config", absolute(f.config))
	add("--login", f.user)
	add("--jump", f.jump)
	add("--agent-socket", absolute(f.local.agentSocket))
	add("--remote-socket", f.remote.socket)
	add("--keys", f.remote.keys)
	for _, file := range k.identities {
		add("--identity", absolute(file))
	}
	for _, option := range k.options {
		add("--option", option)
	}
	if k.port > 0 {
		args = append(args, "--port", strconv.Itoa(k.port))
	}
	for flag, set := range map[string]bool{
		"--allow-unrestricted": f.local.allowUnrestricted, "--no-compat": f.local.noCompat,
		"--takeover": f.remote.takeover, "--pin": k.pin,
	} {
		if set {
			args = append(args, flag)
		}
	}
	return append(args, "--", k.target.name)
}

// absolute makes a path mean the same in another directory. One that begins with
// ~ or % is ssh's to expand, and none is no file.
func absolute(path string) string {
	if path == "" || path == "none" || path[0] == '~' || path[0] == '%' {
		return path
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// A keepError says that the bridge's process ended before it was one.
type keepError struct{ log string }

func (e *keepError) Error() string { return "the bridge could not be started in the background" }

// Hint says where to look.
func (e *keepError) Hint() string { return "see " + e.log }
