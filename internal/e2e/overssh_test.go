//go:build unix

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// logins counts how often sshd has let somebody in.
func (s *scene) logIns() int { return strings.Count(s.sshd.Log(), "Accepted publickey for ") }

// requireNoMaster: no ssh of ours is left, nor a socket of its.
func (s *scene) requireNoMaster(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		left, err := filepath.Glob(s.laptop.Dir() + "/gpg-bridge/m*")
		return err == nil && len(left) == 0
	}, "a control socket is left")
}

// Where ssh_config or a flag asks for what only ssh does, the user's ssh logs in, once, and gpg
// works in the session: output and status are the command's.
func TestOverTheUsersSSH(t *testing.T) {
	s := stage{sshd: sshd.Config{Options: []string{"X11Forwarding yes", "Compression yes"}}}.set(t)
	env.Tool(t, "xauth")
	var logins int
	for _, c := range []struct {
		flags []string
		why   string // at -v
	}{
		{[]string{"-C"}, "Compression yes"},
		{[]string{"-oVerifyHostKeyDNS=ask"}, "VerifyHostKeyDNS ask"},
		{[]string{"-oRekeyLimit=1G"}, "RekeyLimit"},
		{[]string{"-C", "-oProxyCommand=" + program + " proxy --alias %n --user %r %h %p"}, "Compression yes"}, // one bridge
		{[]string{"-M", "-S", s.laptop.Dir() + "/c1"}, "ControlMaster"},
		{[]string{"-oControlMaster=auto", "-oControlPath=" + s.laptop.Dir() + "/c%p%%2"}, "ControlMaster"},
		{[]string{"-oControlMaster=ask", "-S", s.laptop.Dir() + "/c3"}, "ControlMaster"},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			logins++
			s.runSigning(t, c.flags...)
			require.Equal(t, logins, s.logIns())
			s.requireNoSocket(t)
			s.requireNoMaster(t)
			logins++
			r := s.run(t, append(c.flags, "-v", "host", "echo out; echo err >&2; exit 7")...)
			require.Equal(t, "out\n", r.stdout)
			require.Contains(t, r.stderr, "err\n")
			require.Contains(t, r.stderr, c.why)
			require.Equal(t, 7, r.code)
		})
	}
	t.Run("-X", func(t *testing.T) {
		cmd := exec.Command(program, s.args("-Y", "host", `echo "$DISPLAY"; `+s.signing()+` >signature`)...)
		cmd.Env = []string{"DISPLAY=:99"}
		r := launchAs(t, cmd, s.laptop, nil).wait(t)
		require.Zero(t, r.code, r.stderr)
		require.Regexp(t, `^localhost:\d+\.0\n$`, r.stdout)
		s.verify(t, s.host.ReadFile(t, "signature"), "hello\n")
		s.requireNoMaster(t)
	})
	require.Empty(t, s.agents())
}

// A connection that the user's ssh shares is used, and stays.
func TestOverASharedConnection(t *testing.T) {
	b := stage{}.set(t).sharing(t)
	master := b.shell(t)
	run := func(args ...string) result {
		return launch(t, b.laptop, nil, append([]string{"ssh", "-F", b.config}, args...)...).wait(t)
	}
	r := run("host", b.signing())
	require.Zero(t, r.code, r.stderr)
	b.verify(t, []byte(r.stdout), "hello\n")
	r = run("host", "exit 3")
	require.Equal(t, 3, r.code)
	require.Equal(t, 1, b.logins())
	b.requireTidy(t)
	b.requireNoSocket(t)
	require.NoError(t, master.stdin.Close())
	select {
	case <-master.ended:
		require.True(t, master.cmd.ProcessState.Success())
	case <-time.After(patience):
		t.Fatal("the user's ssh does not end with their shell")
	}
}

// A user who lets nobody share their connection is told of that, each time: it says nothing
// about the account's shell.
func TestOverAConnectionThatIsNotShared(t *testing.T) {
	b := stage{}.set(t).sharing(t)
	b.ssh(t, []string{"SSH_ASKPASS=/bin/false", "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:0"}, "-oControlMaster=ask", "-N", "host")
	eventually(t, func() bool { _, err := os.Stat(b.control); return err == nil }, "nothing is shared")
	for range 2 {
		r := b.run(t, "-oControlPath="+b.control, "host", "echo out")
		require.Equal(t, "out\n", r.stdout, "ssh connects by itself then")
		require.Contains(t, r.stderr, "gpg-bridge: warning: prepare the host: the ssh that shares its connection would not open a session")
		require.Contains(t, r.stderr, "ControlMaster ask and autoask ask you each time")
		require.NotContains(t, r.stderr, "sh -c")
		require.NotContains(t, r.stderr, "no shell")
	}
	require.NoFileExists(t, filepath.Join(b.laptop.Dir(), "cache", "gpg-bridge", "no-shell"))
}

// What ssh says of a failed log-in is all that is said.
func TestOverSSHRefused(t *testing.T) {
	s := stage{}.set(t)
	for _, args := range [][]string{
		{"-oPreferredAuthentications=gssapi-with-mic", "-oGSSAPIAuthentication=yes", "host", "true"},
		{"-C", "-oPort=1", "host", "true"},
		{"-C", "-oUserKnownHostsFile=/dev/null", "host", "true"},
	} {
		r := s.run(t, args...)
		var stderr strings.Builder
		cmd := s.sshd.SSH(args...)
		cmd.Env, cmd.Stderr = s.laptop.Env(), &stderr
		require.Error(t, cmd.Run())
		require.Equal(t, cmd.ProcessState.ExitCode(), r.code)
		require.Equal(t, stderr.String(), r.stderr)
	}
}

// A key that only ssh can use, of a PKCS#11 token.
func TestOverSSHWithPKCS11(t *testing.T) {
	env.Tool(t, "softhsm2-util")
	s := stage{}.set(t)
	provider := softHSM(t, s.laptop)
	s.sshd.SetKeyOptions(t, provider.public+"\n") // a line of its own
	askpass := filepath.Join(t.TempDir(), "askpass")
	require.NoError(t, os.WriteFile(askpass, []byte("#!/bin/sh\necho 123456\n"), 0o700))
	cmd := exec.Command(program, s.args("-I", provider.library, "-oIdentityFile=none", "-oIdentityAgent=none", "host", s.signing())...)
	cmd.Env = append(provider.env, "SSH_ASKPASS="+askpass, "SSH_ASKPASS_REQUIRE=force")
	r := launchAs(t, cmd, s.laptop, nil).wait(t)
	require.Zero(t, r.code, r.stderr)
	s.verify(t, []byte(r.stdout), "hello\n")
	require.Contains(t, s.sshd.Log(), "Accepted publickey for "+s.host.Name+" from 127.0.0.1")
}

// A hsm is a token in software with one key.
type hsm struct {
	library string
	env     []string
	public  string // for authorized_keys
}

func softHSM(t *testing.T, laptop *gpghome.Home) hsm {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "softhsm2.conf")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tokens"), 0o700))
	require.NoError(t, os.WriteFile(config, []byte("directories.tokendir = "+dir+"/tokens\nobjectstore.backend = file\n"), 0o600))
	h := hsm{library: "/usr/lib/softhsm/libsofthsm2.so", env: []string{"SOFTHSM2_CONF=" + config}}
	do := func(name string, args ...string) string {
		cmd := exec.Command(env.Tool(t, name), args...)
		cmd.Env = append(os.Environ(), h.env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	do("softhsm2-util", "--init-token", "--free", "--label", "test", "--so-pin", "123456", "--pin", "123456")
	key := filepath.Join(dir, "key")
	do("ssh-keygen", "-q", "-t", "ecdsa", "-m", "PKCS8", "-N", "", "-f", key)
	do("softhsm2-util", "--import", key, "--token", "test", "--pin", "123456", "--label", "k", "--id", "01")
	h.public = strings.TrimSpace(do("ssh-keygen", "-D", h.library))
	return h
}

// -f returns when the user is logged in; gpg is served for as long as the command runs.
func TestForkOverSSH(t *testing.T) {
	s := stage{}.set(t)
	start := func(args ...string) {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		require.NoError(t, err)
		defer out.Close()
		cmd := exec.Command(program, s.args(args...)...)
		cmd.Env, cmd.Stdout, cmd.Stderr = s.laptop.Env(), out, out
		failed := runWithin(cmd, patience)
		said, err := os.ReadFile(out.Name())
		require.NoError(t, err)
		require.NoError(t, failed, "%s", said)
		require.Empty(t, string(said))
	}
	start("-f", "host", "until [ -e go ]; do sleep .1; done; "+s.signing()+" >signature; until [ -e stop ]; do sleep .1; done")
	require.Equal(t, 1, s.logIns())
	s.sign(t)
	s.host.WriteFile(t, "go", nil, 0o600)
	eventually(t, func() bool { data, err := os.ReadFile(s.host.Path("signature")); return err == nil && len(data) > 0 }, "nothing is signed")
	s.requireSocket(t)
	s.host.WriteFile(t, "stop", nil, 0o600)
	eventually(t, func() bool { _, err := os.Lstat(s.socket(t)); return err != nil }, "the bridge stays")

	start("-f", "-N", "host")
	require.Equal(t, 2, s.logIns())
	s.sign(t)
	s.endSSH(t, "-f", "-N")
	s.requireNoMaster(t)
	s.runSigning(t, "-C")
	s.requireNoSocket(t)
}

// endSSH ends this account's ssh client with these flags.
func (s *scene) endSSH(t *testing.T, flags ...string) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, entry := range entries {
		line, _ := os.ReadFile(entry)
		words := strings.Split(string(line), "\x00")
		if words[0] != "ssh" || !strings.Contains(string(line), s.sshd.ConfigFile) || !strings.Contains(string(line), strings.Join(flags, "\x00")) {
			continue
		}
		var pid int
		_, err := fmt.Sscanf(entry, "/proc/%d/cmdline", &pid)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
		return
	}
	t.Fatal("there is no such ssh")
}

// -N serves until a signal, and nothing is left.
func TestForwardOnlyOverSSH(t *testing.T) {
	s := stage{}.set(t)
	p := s.bridge(t, "-C")
	s.sign(t)
	require.Equal(t, 1, s.logIns())
	s.end(t, p)
	s.requireNoSocket(t)
	s.requireNoMaster(t)
}

// A lost connection ends the session as with ssh.
func TestLostOverSSH(t *testing.T) {
	s := stage{}.set(t)
	dead := s.laptop.Dir() + "/gpg-bridge/mABC234"
	require.NoError(t, os.MkdirAll(filepath.Dir(dead), 0o700))
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	p := s.start(t, "-C", "host", "echo begun; sleep 60")
	p.waitFor(t, &p.stdout, "begun")
	require.NoFileExists(t, dead, "what a killed ssh has left")
	s.sshd.KillSessions()
	r := p.wait(t)
	require.Equal(t, 255, r.code)
	require.Contains(t, r.stderr, "Connection to 127.0.0.1 closed by remote host.")
}

// A host whose only key exchange is one that ssh alone has.
func TestOverSSHForAnAlgorithm(t *testing.T) {
	s := stage{sshd: sshd.Config{Options: []string{"KexAlgorithms sntrup761x25519-sha512@openssh.com"}}}.set(t)
	r := s.runSigning(t)
	require.Empty(t, r.stderr)
	require.Equal(t, 1, s.logIns())
	r = s.run(t, "-v", "host", "exit 4")
	require.Equal(t, 4, r.code)
	require.Contains(t, r.stderr, "sntrup761x25519-sha512@openssh.com")
	s.requireNoMaster(t)
}

// Sessions that begin together, and want to share at one place, all run.
func TestOverSSHTogether(t *testing.T) {
	s := stage{}.set(t)
	for _, persist := range []string{"no", "5"} {
		var all []*process
		for i := range 3 {
			all = append(all, s.start(t, "-oControlMaster=auto", "-oControlPath="+s.laptop.Dir()+"/together"+persist, "-oControlPersist="+persist,
				"host", fmt.Sprintf("echo %d", i)))
		}
		for i, p := range all {
			r := p.wait(t)
			require.Zero(t, r.code, r.stderr)
			require.Equal(t, fmt.Sprintf("%d\n", i), r.stdout)
		}
	}
}

// While a session over ssh lasts, others find its connection where ssh_config says; afterwards
// nothing is there.
func TestOverSSHShares(t *testing.T) {
	b := stage{}.set(t).sharing(t)
	require.NoError(t, os.WriteFile(b.control, nil, 0o600)) // as good as no socket, and not to be removed
	run := func(args ...string) result {
		return launch(t, b.laptop, nil, append([]string{"ssh", "-F", b.config}, args...)...).wait(t)
	}
	require.Zero(t, run("host", "true").code)
	require.FileExists(t, b.control)
	require.NoError(t, os.Remove(b.control))

	in, w, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	p := launch(t, b.laptop, in, "ssh", "-F", b.config, "host", "echo begun; cat")
	p.waitFor(t, &p.stdout, "begun")
	logins := b.logins()
	out, err := exec.Command(env.Tool(t, "ssh"), "-F", b.config, "host", "echo shared").Output()
	require.NoError(t, err)
	require.Equal(t, "shared\n", string(out))
	require.Equal(t, logins, b.logins())
	require.NoError(t, w.Close())
	require.Zero(t, p.wait(t).code)
	require.NoFileExists(t, b.control)
	left, err := filepath.Glob(filepath.Dir(b.control) + "/*.*")
	require.NoError(t, err)
	require.Empty(t, left)
}

// Where there is nowhere to put a socket, the user still gets the shell.
func TestOverSSHWithoutARuntimeDirectory(t *testing.T) {
	s := stage{}.set(t)
	cmd := exec.Command(program, s.args("-C", "host", "echo out; exit 6")...)
	cmd.Env = []string{"TMPDIR=/nonexistent", "XDG_RUNTIME_DIR="}
	r := launchAs(t, cmd, s.laptop, nil).wait(t)
	require.Equal(t, 6, r.code)
	require.Equal(t, "out\n", r.stdout)
	require.Contains(t, r.stderr, "no bridge over your ssh")
}

// A host whose key has changed does not get the agent, as with our own client.
func TestOverSSHToAChangedHost(t *testing.T) {
	s := stage{}.set(t)
	known := filepath.Join(t.TempDir(), "known")
	other, err := os.ReadFile(s.sshd.ClientKeyFile + ".pub")
	require.NoError(t, err)
	line := fmt.Sprintf("[%s]:%d %s", s.sshd.Host, s.sshd.Port, other)
	require.NoError(t, os.WriteFile(known, []byte(line), 0o600))
	r := s.run(t, "-C", "-oUserKnownHostsFile="+known, "-oStrictHostKeyChecking=no", "host", "echo in")
	require.Equal(t, 255, r.code)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, "REMOTE HOST IDENTIFICATION HAS CHANGED")
	r = s.run(t, "-C", "-oUserKnownHostsFile=/dev/null", "-oStrictHostKeyChecking=no", "host", "echo in")
	require.Equal(t, "in\n", r.stdout)
}

// If the connection is lost before the session begins, no other is made without the user's
// forwards.
func TestOverSSHMakesNoSecondConnection(t *testing.T) {
	s := stage{}.set(t)
	require.NoError(t, s.laptop.StartAgent(t.Context()))
	require.NoError(t, s.laptop.SignalAgent(syscall.SIGSTOP)) // the session waits for it a while
	defer func() { _ = s.laptop.SignalAgent(syscall.SIGCONT) }()
	p := s.start(t, "-v", "-C", "host", "echo began")
	p.waitFor(t, &p.stderr, "over the connection of the user's ssh")
	s.sshd.KillSessions()
	r := p.wait(t)
	require.Equal(t, 255, r.code)
	require.Empty(t, r.stdout)
	require.Equal(t, 1, s.logIns())
}
