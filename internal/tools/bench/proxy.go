package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

const (
	proxyLogins = 15        // of each column
	proxyBulk   = 256 << 20 // bytes that one transfer moves
	bridgeTime  = 20 * time.Second
)

// A way is one of the ways of the user's own ssh to the host.
type way struct {
	name, host string
	lines      string // of ssh_config
	up         bool   // the bridge is up before ssh starts
}

func (l *lab) ways(config string) []way {
	proxy := "  ProxyCommand " + l.program + " proxy -F " + config + " --alias %n --user %r %h %p\n"
	fdpass := proxy + "  ProxyUseFdpass yes\n"
	return []way{
		{"ssh", "direct", "", false},
		{"through proxy", "proxied", proxy, true},
		{"  with fdpass", "passed", fdpass, true},
		{"through proxy, no bridge yet", "proxied", "", false},
		{"  with fdpass", "passed", "", false},
	}
}

// proxyCipher is the fastest that ssh has here, so that what it costs hides least.
const proxyCipher = "aes128-gcm@openssh.com"

// proxy measures what gpg-bridge proxy costs plain ssh: the time of a login with a command that
// does nothing, and the rate of bulk data.
func proxy(l *lab) {
	dir := env.ShortDir(l.p)
	config := filepath.Join(dir, "config")
	server := sshd.Start(l.p, sshd.Config{Options: l.sshdOptions()})
	host, err := os.ReadFile(server.ConfigFile)
	l.must(err)
	_, settings, _ := strings.Cut(string(host), "\n")
	var text strings.Builder
	ways := l.ways(config)
	for _, w := range ways[:3] {
		text.WriteString("Host " + w.host + "\n" + w.lines + settings + "  " + "Ciphers " + proxyCipher + "\n")
	}
	l.must(os.WriteFile(config, []byte(text.String()), 0o600))
	defer l.downAll()

	logins := make([][]float64, len(ways))
	for range proxyLogins {
		for i, w := range ways {
			logins[i] = append(logins[i], l.login(w, config))
		}
	}
	toHost, fromHost := make([][]float64, 3), make([][]float64, 3)
	for range l.rounds {
		for i, w := range ways[:3] {
			fromHost[i] = append(fromHost[i], l.transfer(w, config, fmt.Sprintf("head -c %d /dev/zero", proxyBulk), nil))
			toHost[i] = append(toHost[i], l.transfer(w, config, "cat >/dev/null", io.LimitReader(zeros{}, proxyBulk)))
		}
	}
	fmt.Printf("\nplain ssh, median of %d logins and %d transfers, %s; the ratio is to ssh without a proxy\n\n%-30s %18s %20s %20s\n",
		proxyLogins, l.rounds, proxyCipher, "", "ssh host true, ms", "from the host, MB/s", "to the host, MB/s")
	for i, w := range ways {
		fmt.Printf("%-30s %11.0f %6.2f", w.name, middle(logins[i]), ratio(logins[i], logins[0]))
		if i < len(toHost) {
			fmt.Printf(" %13.0f %6.2f %13.0f %6.2f", middle(fromHost[i]), ratio(fromHost[i], fromHost[0]), middle(toHost[i]), ratio(toHost[i], toHost[0]))
		}
		fmt.Println()
	}
}

// login returns the time of a command that does nothing, in ms.
func (l *lab) login(w way, config string) float64 {
	l.doing = "login, " + w.name
	if w.up {
		l.must(l.command(nil, l.program, "up", "--timeout", bridgeTime.String(), "-F", config, w.host).Run())
	} else {
		l.downAll()
	}
	start := time.Now()
	l.must(l.command(nil, "ssh", "-F", config, w.host, "true").Run())
	return float64(time.Since(start).Microseconds()) / 1000
}

// transfer returns the rate at which a command moves data, in MB/s.
func (l *lab) transfer(w way, config, command string, stdin io.Reader) float64 {
	l.doing = "transfer, " + w.name
	start := time.Now()
	l.must(l.command(stdin, "ssh", "-F", config, w.host, command).Run())
	return proxyBulk / 1e6 / time.Since(start).Seconds()
}

func (l *lab) downAll() { l.must(l.command(nil, l.program, "down", "--all").Run()) }

func (l *lab) command(stdin io.Reader, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdin = l.laptop.Env(), stdin
	return cmd
}

// zeros is an io.Reader like /dev/zero.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
