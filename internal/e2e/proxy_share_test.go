//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/env"
)

// sshCommand is ssh with the ssh_config, not started.
func (p *proxied) sshCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(env.Tool(t, "ssh"), append([]string{"-F", p.config}, args...)...)
}

// Ten at once make one bridge. The first to end takes nothing from the others.
func TestProxyManyAtOnce(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	var held []*process
	for range 10 {
		held = append(held, p.ssh(t, "dev", "echo started; exec sleep 600"))
	}
	for _, s := range held {
		s.waitFor(t, &s.stdout, "started\n")
	}
	status := p.awaitLeases(t, 10)
	require.Equal(t, []int{status.PID}, p.pids())
	for i, s := range held {
		p.endSession(t, s)
		if i%4 == 0 {
			require.Equal(t, status.PID, p.awaitLeases(t, 9-i).PID)
			p.sshSigns(t)
		}
	}
	p.awaitLeases(t, 0)
}

// A session of gpg-bridge's is the bridge; when it ends, the proxies make one.
func TestProxyBesideASession(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	session := launch(t, p.laptop, nil, "ssh", "-F", p.config, "dev", "echo started; exec sleep 600")
	session.waitFor(t, &session.stdout, "started\n")
	held := p.session(t)
	status := p.awaitLeases(t, 1)
	require.Equal(t, share.Session, status.Kind)
	require.Empty(t, p.pids())
	p.sshSigns(t)

	p.endSession(t, session)
	after := p.awaitLeases(t, 1)
	require.Equal(t, share.Background, after.Kind)
	p.sshSigns(t)
	p.endSession(t, held)
	p.awaitLeases(t, 0)
}

// The bridge never goes through its own proxy, however the line is written.
func TestProxyIsNotItsOwnWay(t *testing.T) {
	for name, lines := range map[string][]string{
		"quotes":      {"ProxyCommand 'PROGRAM' proxy -F \"CONFIG\" --alias %n --user %r %h %p"},
		"match":       {"Port 1", "Match originalhost dev", "ProxyCommand PROXY"},
		"wrapped":     {"ProxyCommand env NAME=value PROXY"},
		"no alias":    {"ProxyCommand PROGRAM proxy -F CONFIG --user %r %h %p"},
		"redirection": {"ProxyCommand PROXY 2>/dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			p := stage{}.set(t).proxied(t, lines...)
			if name == "no alias" { // the host's own settings must be found by its address
				p.replace(t, "Host dev\n", "Host dev "+p.sshd.Host+"\n")
			}
			if name == "match" {
				p.replace(t, "  Port 1\n", "")
			}
			held := p.session(t)
			status := p.awaitLeases(t, 1)
			p.sshSigns(t)
			require.Equal(t, []int{status.PID}, p.pids())
			eventually(t, func() bool { return len(p.children("proxy")) == 1 }, "the proxies are not the user's own alone")
			p.endSession(t, held)
			p.awaitLeases(t, 0)

			// What makes bridges from ssh_config finds the same one.
			if name == "wrapped" || name == "no alias" || name == "redirection" {
				return // not recognised, or under another name
			}
			r := p.do(t, "up", "-F", p.config, "dev")
			require.Zero(t, r.code, "%s", r.stderr)
			require.Equal(t, status.PID, p.awaitUp(t).PID)
		})
	}
}

// replace changes the ssh_config.
func (p *proxied) replace(t *testing.T, old, text string) {
	t.Helper()
	config, err := os.ReadFile(p.config)
	require.NoError(t, err)
	changed := []byte(replaceOnce(string(config), old, text))
	require.NotEqual(t, config, changed)
	require.NoError(t, os.WriteFile(p.config, changed, 0o600))
}

// replaceLast changes the last place of the ssh_config with the old text.
func (p *proxied) replaceLast(t *testing.T, old, text string) {
	t.Helper()
	config, err := os.ReadFile(p.config)
	require.NoError(t, err)
	i := strings.LastIndex(string(config), old)
	require.GreaterOrEqual(t, i, 0)
	changed := string(config[:i]) + text + string(config[i+len(old):])
	require.NoError(t, os.WriteFile(p.config, []byte(changed), 0o600))
}

// Hosts that need a hop get it, and so does their bridge.
func TestProxyThroughAHop(t *testing.T) {
	for name, line := range map[string]string{
		"jump":       "ProxyCommand PROGRAM proxy -F CONFIG -J host --alias %n --user %r %h %p",
		"two jumps":  "ProxyCommand PROGRAM proxy -F CONFIG -J host,host --alias %n --user %r %h %p",
		"jump, port": "ProxyCommand PROGRAM proxy -F CONFIG -J USER@host:PORT --alias %n --user %r %h %p",
		"via":        "ProxyCommand PROGRAM proxy -F CONFIG --via 'ssh -F CONFIG -W %h:%p host' --alias %n --user %r %h %p",
	} {
		t.Run(name, func(t *testing.T) {
			s := stage{}.set(t)
			line := replaceOnce(replaceOnce(line, "PORT", strconv.Itoa(s.sshd.Port)), "USER", s.sshd.User)
			p := s.proxied(t, line)
			held := p.session(t)
			status := p.awaitLeases(t, 1)
			p.sshSigns(t)
			r := p.do(t, "up", "-F", p.config, "dev")
			require.Zero(t, r.code, "%s", r.stderr)
			require.Equal(t, status.PID, p.awaitUp(t).PID, "by the same way, and so the same")
			p.endSession(t, held)
			p.awaitNone(t, "proxy")
			p.awaitLeases(t, 0)
			p.down(t, "--all")
		})
	}
}

// Fifty start, and end at their own time; again and again. There is never more
// than one bridge, and in the end there is none.
func TestProxyComingAndGoing(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	rounds, at := 20, 50
	if raceDetector {
		rounds = 4
	}
	for round := range rounds {
		var all sync.WaitGroup
		for i := range at {
			all.Go(func() { assert.NoError(t, p.comeAndGo(round, i)) })
		}
		all.Wait()
		require.Empty(t, p.children("proxy"))
		eventually(t, func() bool { return len(p.pids()) <= 1 }, "several bridges: %v", p.pids())
	}
	p.awaitLeases(t, 0)
	p.down(t, "--all")
	eventually(t, func() bool { return len(p.pids()) == 0 }, "bridges are left")
}

// comeAndGo is one proxy, without ssh, that hears the host and then leaves: at
// once, or when it may just be about to make the bridge.
func (p *proxied) comeAndGo(round, i int) error {
	cmd := exec.Command(program, "proxy", "-F", p.config, "--alias", "dev", "--user", p.sshd.User, p.sshd.Host, strconv.Itoa(p.sshd.Port))
	cmd.Env = append(p.laptop.Env(), "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	banner := make([]byte, 8)
	if _, err := out.Read(banner); err != nil || string(banner) != "SSH-2.0-" {
		return fmt.Errorf("round %d, %d: %q, %w", round, i, banner, err)
	}
	if i%5 == 0 {
		_ = within(patience, func() bool { return len(p.pids()) > 0 })
	}
	if i%7 == 0 {
		_ = cmd.Process.Kill()
	}
	_ = in.Close()
	_ = cmd.Wait()
	return nil
}
