package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// readyTimeout is how long a forwarder may take until gpg on the host can use
// its socket.
const readyTimeout = 20 * time.Second

// A lab is a laptop with a key and a host with the public half of it, both on
// this machine, and a real sshd between them.
type lab struct {
	p       *env.Program
	program string
	laptop  *gpghome.Home
	host    *gpghome.Home
	key     gpghome.Key
	sshd    *sshd.Server
	socket  string // where the host's gpg looks for its agent
	extra   string // the laptop's agent
	doing   string // for the message of a failure

	rounds int    // of the throughput table
	cipher string // of all lanes of the throughput table, "" for what each takes
	only   string // a part of the names of the measures to take
}

func newLab(p *env.Program, program string) *lab {
	ctx := context.Background()
	l := &lab{p: p, program: program, laptop: gpghome.ForTest(p), host: gpghome.ForTest(p)}
	var err error
	l.key, err = l.laptop.GenerateKey(ctx, gpghome.KeySpec{UserID: "Bench <bench@example.org>"})
	l.must(err)
	l.must(l.host.ImportPublic(ctx, l.laptop))
	l.socket, err = l.host.AgentSocket(ctx)
	l.must(err)
	l.extra, err = l.laptop.ExtraSocket(ctx)
	l.must(err)
	l.sshd = sshd.Start(p, sshd.Config{Options: l.sshdOptions()})
	return l
}

func (l *lab) sshdOptions() []string { return []string{"SetEnv GNUPGHOME=" + l.host.Dir()} }

// removeSocket removes what sshd left behind.
func (l *lab) removeSocket() { _ = os.Remove(l.socket) }

func (l *lab) must(err error) {
	if err != nil {
		l.p.Fatal(l.doing, err)
	}
}

// A column is one way to forward the agent.
type column struct {
	name string
	args []string // the command line
}

func (l *lab) columns() []column {
	forward := l.socket + ":" + l.extra
	return []column{
		{"gpg-bridge ssh -N", []string{l.program, "ssh", "-F", l.sshd.ConfigFile, "-N", "host"}},
		{"ssh -N -R", []string{"ssh", "-F", l.sshd.ConfigFile, "-N", "-R", forward, "host"}},
		{"ssh -R + session", []string{"ssh", "-F", l.sshd.ConfigFile, "-R", forward, "host", "sleep 600"}},
	}
}

// with runs a forwarder, calls work when gpg on the host can sign through it, and ends the
// forwarder.
func (l *lab) with(c column, work func()) {
	l.removeSocket()
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Env = l.laptop.Env()
	var said strings.Builder
	cmd.Stderr = &said
	l.must(cmd.Start())
	l.waitReady(c)
	work()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	l.sshd.KillSessions() // ends a `sleep` that is left
}

func (l *lab) waitReady(c column) {
	deadline := time.Now().Add(readyTimeout)
	for time.Now().Before(deadline) {
		if _, err := os.Stat(l.socket); err == nil {
			if l.sign(context.Background()) == nil {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.p.Fatal(c.name + ": no signature within " + readyTimeout.String())
}

// sign makes one signature with the host's gpg.
func (l *lab) sign(ctx context.Context) error {
	_, _, err := l.host.Gpg(ctx, strings.NewReader("hello\n"), "--no-autostart", "-u", l.key.Fingerprint, "--detach-sign", "-o", "-")
	return err
}
