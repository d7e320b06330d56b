package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// readyTimeout is how long a forwarder may take until its socket leads to the
// agent.
const readyTimeout = 30 * time.Second

// A lab is a laptop with a key and a host with the public half of it, both on
// this machine, and a real sshd between them.
type lab struct {
	t       testing.TB
	laptop  *gpghome.Home
	host    *gpghome.Home
	key     gpghome.Key
	sshd    *sshd.Server
	socket  string // where the host's gpg looks for its agent
	extra   string // the laptop's agent
	version string // of the laptop's agent, as it tells
}

func newLab(ctx context.Context, t testing.TB) *lab {
	t.Helper()
	l := &lab{t: t, laptop: gpghome.ForTest(t), host: gpghome.ForTest(t)}
	var err error
	l.key, err = l.laptop.GenerateKey(ctx, gpghome.KeySpec{UserID: "Stress <stress@example.org>"})
	l.must(err)
	l.must(l.host.ImportPublic(ctx, l.laptop))
	l.socket, err = l.host.AgentSocket(ctx)
	l.must(err)
	l.extra, err = l.laptop.ExtraSocket(ctx)
	l.must(err)
	_, err = l.laptop.AgentPID(ctx) // remembers it: an agent at its limit cannot be asked
	l.must(err)
	l.version, err = askVersion(l.extra)
	l.must(err)
	l.sshd = sshd.Start(t, sshd.Config{Options: []string{"SetEnv GNUPGHOME=" + l.host.Dir()}})
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// limitAgent restarts the laptop's agent with a limit of so many descriptors.
func (l *lab) limitAgent(ctx context.Context, descriptors int) {
	l.t.Helper()
	l.must(l.laptop.StopAgent(ctx))
	script := fmt.Sprintf(`ulimit -n %d && exec gpg-agent --homedir "$GNUPGHOME" --daemon`, descriptors)
	_, _, err := l.laptop.Run(ctx, nil, "sh", "-c", script)
	l.must(err)
	_, err = l.laptop.AgentPID(ctx)
	l.must(err)
}

// freshAgent restarts the laptop's agent without a special limit.
func (l *lab) freshAgent(ctx context.Context) {
	l.t.Helper()
	l.must(l.laptop.StopAgent(ctx))
	l.must(l.laptop.StartAgent(ctx))
}

// A forwarder is one way to forward the agent.
type forwarder struct {
	name string
	args []string // the command line
	ours bool
}

func (l *lab) forwarders(program string) []forwarder {
	return []forwarder{l.bridge(program), {
		name: "ssh -N -R",
		args: []string{"ssh", "-F", l.sshd.ConfigFile, "-N", "-R", l.socket + ":" + l.extra, "host"},
	}}
}

func (l *lab) bridge(program string) forwarder {
	return forwarder{
		name: "gpg-bridge ssh -N",
		args: []string{program, "ssh", "-F", l.sshd.ConfigFile, "-N", "host"},
		ours: true,
	}
}

// with runs a forwarder, calls work when its socket leads to the agent, and ends the forwarder.
// It returns what the forwarder printed.
func (l *lab) with(f forwarder, work func()) (said string) {
	l.t.Helper()
	_ = os.Remove(l.socket) // sshd leaves it behind
	cmd := exec.Command(f.args[0], f.args[1:]...)
	cmd.Env = append(l.laptop.Env(), "GORACE=atexit_sleep_ms=0")
	var out strings.Builder
	cmd.Stderr = &out
	l.must(cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		said = out.String()
	}()
	if err := l.awaitReady(); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		l.t.Fatalf("%s: %v: %s", f.name, err, out.String())
	}
	work()
	return ""
}

func (l *lab) awaitReady() error {
	var err error
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = l.visit(time.Second, 0); err == nil {
			return nil
		}
	}
	return err
}
