package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd"
)

const sshLong = `ssh runs a command on a host, or your login shell, with your local gpg-agent
forwarded to where the host's gpg looks for its own. It connects as your own ssh
would, from your ssh_config; its flags are ssh's.

  gpg-bridge ssh dev                      a shell; git commit -S, gpg --decrypt work there
  gpg-bridge ssh dev git commit -S -m x   one command
  gpg-bridge ssh -N dev                   forward only, until Ctrl-C

The exit status is the remote command's, or 255 when the connection failed.`

// exitConnection is ssh's exit status for its own failures (ssh(1)).
const exitConnection = 255

// closeTimeout bounds the tidying up on the host when the program ends.
const closeTimeout = 5 * time.Second

// hurriedCloseTimeout is for a user who left by ~.
const hurriedCloseTimeout = time.Second

// sshFlags is the command line of gpg-bridge ssh.
type sshFlags struct {
	local  localFlags
	remote remoteFlags

	options sshfwd.Options
	session sessionFlags
	noShell bool   // -N
	tty     string // RequestTTY as -t and -T say it, "" where neither is there
	verbose int
	quiet   bool
}

func (f *sshFlags) addTo(flags *pflag.FlagSet) {
	f.local.addTo(flags)
	f.remote.addTo(flags)
	f.session.addTo(flags, &f.options)
	addConnection(flags, &f.options)
	flags.BoolFuncP("forward-agent", "A", "let the host use your ssh-agent", f.set("ForwardAgent=yes"))
	flags.BoolFuncP("no-forward-agent", "a", "do not let the host use your ssh-agent", f.set("ForwardAgent=no"))
	flags.BoolVarP(&f.noShell, "no-command", "N", false, "run nothing: forward only, until a signal")
	flags.BoolFuncP("no-tty", "T", "no terminal on the host", f.setNoTTY)
	flags.BoolFuncP("tty", "t", "a terminal on the host for a command too; -tt even without one here", f.setTTY)
	flags.CountVarP(&f.verbose, "verbose", "v", "say what happens")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no warnings")
}

// setTTY is -t and setNoTTY is -T: as with ssh's, the last one counts.
func (f *sshFlags) setTTY(string) error {
	if f.tty == "yes" || f.tty == "force" {
		f.tty = "force"
	} else {
		f.tty = "yes"
	}
	return nil
}

func (f *sshFlags) setNoTTY(string) error {
	f.tty = "no"
	return nil
}

// remoteFlags are those of every command that forwards to a host.
type remoteFlags struct {
	socket   string
	keys     string
	takeover bool
}

func (f *remoteFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.socket, "remote-socket", "", "the socket `path` on the host; nothing is then run there to prepare it (default: where its gpg looks)")
	flags.StringVar(&f.keys, "keys", "", "the public `keys` that the host shall have: a list with commas, or none (default: those of your secret keys)")
	flags.BoolVar(&f.takeover, "takeover", false, "replace the live forward of another session")
}

// applyTo puts the keys where the local side finds them.
func (f *remoteFlags) applyTo(local *bridge.Local) {
	switch f.keys {
	case "":
	case "none":
		local.NoKeys = true
	default:
		local.Keys = strings.FieldsFunc(f.keys, func(r rune) bool { return r == ',' || r == ' ' })
	}
}

func newSSH(ui *ui) *cobra.Command {
	var flags sshFlags
	cmd := &cobra.Command{
		Use:   "ssh [flags] [user@]host [command [arg…]]",
		Short: "a shell or a command on a host, with the local agent forwarded",
		Long:  sshLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := flags.destination(cmd, args)
			if err != nil {
				return err
			}
			s := &sshRun{ui: ui, flags: &flags, command: command}
			return s.run(cmd.Context())
		},
	}
	flags.addTo(cmd.Flags())
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// destination takes the host off args, and flags that follow it, as ssh does;
// the rest is the command.
func (f *sshFlags) destination(cmd *cobra.Command, args []string) (command string, err error) {
	if len(args) == 0 {
		return "", &usageError{cmd.CommandPath(), errors.New("which host?")}
	}
	f.options.Destination = args[0]
	if err := cmd.Flags().Parse(args[1:]); err != nil {
		return "", &usageError{cmd.CommandPath(), err}
	}
	if help, err := cmd.Flags().GetBool("help"); err == nil && help {
		return "", pflag.ErrHelp
	}
	return strings.Join(cmd.Flags().Args(), " "), nil
}

// sshRun is one run of gpg-bridge ssh.
type sshRun struct {
	ui      *ui
	flags   *sshFlags
	command string

	config *sshfwd.Config
	target target
	client *sshfwd.Client // nil over a master's connection
	conn   connection     // the same, or the master's
	link   bridge.Link    // over conn

	board      *board
	background bool          // this is a process that nobody looks at
	holder     *share.Holder // of -N, which is the bridge before it connects; else nil
	master     *master       // of a background process; else nil

	disconnected atomic.Bool // the user left by ~.
}

// run does what was asked for: a session, or forwarding alone.
func (r *sshRun) run(ctx context.Context) error {
	r.ui.setQuiet(r.flags.quiet)
	if err := r.resolve(ctx); err != nil {
		return &exitError{exitConnection, err}
	}
	if r.onlyForward() {
		return r.keepForwarding(ctx)
	}
	return r.once(ctx, func(ctx context.Context, _ *bridge.Bridge) error { return r.session(ctx) })
}

// once connects, brings the bridge up, lets use run with it and takes it down
// again. What fails on GPG's side is a warning, unless the bridge is all that
// was asked for.
func (r *sshRun) once(ctx context.Context, use func(context.Context, *bridge.Bridge) error) error {
	local := r.flags.local.local()
	r.flags.remote.applyTo(local)
	check := startCheck(ctx, local)
	defer check.stop()
	if err := r.connect(ctx); err != nil {
		return &exitError{exitConnection, err}
	}
	defer r.conn.Close()
	coming := r.bringUp(ctx, local, check.wait())
	defer r.takeDown(ctx, coming)
	if !r.mayOverlap() || !coming.isRequested() {
		<-coming.settled
		if coming.err != nil && r.bridgeIsAll() {
			return &exitError{exitConnection, coming.err}
		}
		if r.onlyForward() && coming.bridge() == nil { // it was cut short
			return &exitError{exitConnection, context.Cause(ctx)}
		}
	}
	coming.warnOnce(ctx, r.ui)
	if r.client != nil {
		if err := r.openForwards(ctx, coming.path()); err != nil {
			return &exitError{exitConnection, err}
		}
	}
	return use(ctx, coming.bridge())
}

// mayOverlap reports whether the session may start while the host has not yet
// answered to the forward: not where the answer decides what comes next.
func (r *sshRun) mayOverlap() bool {
	return !r.bridgeIsAll() && len(r.config.Forwards.Remote) == 0
}

func (r *sshRun) resolve(ctx context.Context) (err error) {
	r.flags.options.Command, r.flags.options.Subsystem = r.command, r.flags.session.subsystem
	if r.config, err = sshfwd.Resolve(ctx, r.flags.options); err != nil {
		return err
	}
	for _, warning := range r.config.Warnings {
		r.ui.warn(errors.New(warning))
	}
	if r.target, err = r.flags.target(r.config); err != nil {
		return err
	}
	kind := share.Session
	if r.background {
		kind = share.Background
	}
	r.board = newBoard(r.target, kind, r.flags.local.agentSocket)
	return r.checkSession()
}

func (r *sshRun) dial(ctx context.Context) (*sshfwd.Client, error) {
	log := r.ui.log(r.flags.verbose)
	r.config.StateDir = stateDir()
	r.config.Stderr = r.ui.stderr
	client, err := sshfwd.Dial(ctx, r.config, newPrompter(r.ui), log)
	if err != nil {
		return nil, err
	}
	log.Debug("authenticated")
	return client, nil
}

// onlyForward reports whether no session is wanted: -N, or SessionType none.
func (r *sshRun) onlyForward() bool { return r.flags.noShell || r.config.SessionType == "none" }

// bridgeIsAll reports whether there is no point in going on without a bridge.
func (r *sshRun) bridgeIsAll() bool { return r.onlyForward() || r.config.ExitOnForwardFailure }

// localCheck is the check of the local side while the host is being connected
// to.
type localCheck struct {
	cancel context.CancelFunc
	done   chan struct{}
	found  bridge.Finding
}

func startCheck(ctx context.Context, local *bridge.Local) *localCheck {
	ctx, cancel := context.WithCancel(ctx)
	c := &localCheck{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.found = local.Check(ctx)
	}()
	return c
}

func (c *localCheck) wait() bridge.Finding {
	<-c.done
	return c.found
}

func (c *localCheck) stop() {
	c.cancel()
	<-c.done
}
