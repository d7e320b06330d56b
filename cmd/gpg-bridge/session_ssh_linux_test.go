package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// A host is a real sshd, with the two programs that connect to it; ours has an agent to
// forward.
type host struct {
	srv  *sshd.Server
	ssh  string
	home *gpghome.Home
}

func newHost(t *testing.T) *host {
	t.Helper()
	return newHostWith(t, sshd.Config{Options: []string{"AcceptEnv GB_*", "StreamLocalBindUnlink yes"}})
}

func newHostWith(t *testing.T, resolved sshd.Config) *host {
	t.Helper()
	program := env.Tool(t, "ssh")
	home := gpghome.ForTest(t)
	require.NoError(t, home.StartAgent(t.Context()))
	return &host{ssh: program, home: home, srv: sshd.Start(t, resolved)}
}

// command returns ssh, or gpg-bridge ssh, with the same arguments.
func (h *host) command(t *testing.T, ours bool, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"-F", h.srv.ConfigFile, "-o", "LogLevel=INFO"}, args...)
	environ := append(h.home.Env(), "TERM=vt100", "GB_SENT=sent", "GB_KEPT=kept", "GORACE=atexit_sleep_ms=0")
	if !ours {
		cmd := exec.Command(h.ssh, args...)
		cmd.Env = environ
		return cmd
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir := env.ShortDir(t)
	cmd := exec.Command(self, append([]string{
		"ssh", "--keys", "none", "--remote-socket", filepath.Join(dir, "s"),
	}, args...)...)
	cmd.Env = append(environ, asProgram+"=1", "XDG_CACHE_HOME="+dir)
	return cmd
}

// An ending is what a user or a script sees of a run's end.
type ending struct {
	status         int
	stdout, stderr string
}

var (
	ownWords  = regexp.MustCompile(`(?m)^gpg-bridge: .*\n`)
	lineEnds  = regexp.MustCompile(`\r+\n`)
	sshsLoss  = regexp.MustCompile(`(?m)^(Read from remote host .*\n)?client_loop: send disconnect: .*\n`)
	sshsWords = regexp.MustCompile(`(?m)^(v?(dollar_)?percent_expand|Cannot execute command-line|Bad (local|remote|dynamic) forwarding|You must specify|subsystem request failed|Terminated|Killed by|bind \[|channel_setup_fwd|Could not request local|(Warning|Error): remote port|unix_listener).*\n`)
)

// plain removes the messages that the two programs word differently. When a connection is lost,
// ssh says whether it was reading or writing just then.
func plain(text string) string {
	text = lineEnds.ReplaceAllString(text, "\n")
	text = sshsLoss.ReplaceAllString(text, "Connection to 127.0.0.1 closed by remote host.\n")
	return sshsWords.ReplaceAllString(ownWords.ReplaceAllString(text, ""), "")
}

func TestSessionsEndAsWithSSH(t *testing.T) {
	h := newHost(t)
	taken := strconv.Itoa(h.srv.Port)
	socket := filepath.Join(env.ShortDir(t), "near")
	loop := `echo ready; while :; do sleep 0.05; done`
	for _, test := range []struct {
		name, stdin string
		args        []string
		signal      syscall.Signal // sent when "ready" was said
		anyLoss     bool           // with -q, ssh says nothing if it loses the connection while it writes
	}{
		{name: "true", args: []string{"host", "true"}},
		{name: "status", args: []string{"host", "exit 3"}},
		{name: "both outputs", args: []string{"host", "echo out; echo err >&2; exit 1"}},
		{name: "several words", args: []string{"host", "echo", "a  b", "'c  d'"}},
		{name: "a flag behind --", args: []string{"host", "--", "printf", "%s.", "-x"}},
		{name: "flags behind -- and the host", args: []string{"--", "host", "-v", "-T"}},
		{name: "a command behind -- and the host", args: []string{"-q", "--", "host", "-oProxyCommand=touch pwned; false"}},
		{name: "-- twice", args: []string{"--", "host", "--", "exit", "3"}},
		{name: "stdin", stdin: "hello\n", args: []string{"host", "cat"}},
		{name: "stdin with an escape", stdin: "\n~.\n~~\n", args: []string{"host", "cat"}},
		{name: "-n", stdin: "hello\n", args: []string{"-n", "host", "cat"}},
		{name: "StdinNull", stdin: "hello\n", args: []string{"-o", "StdinNull=yes", "host", "cat"}},
		{name: "LocalCommand", stdin: "hello\n", args: []string{"-o", "PermitLocalCommand=yes",
			"-o", "LocalCommand=echo '%% %d %h %i %k %L %l %n %p %r %u %T %C ${HOME}'; cat; echo err >&2; exit 3", "host", "echo remote; cat"}},
		{name: "LocalCommand and -n", stdin: "hello\n", args: []string{"-n", "-o", "PermitLocalCommand=yes", "-o", "LocalCommand=cat", "host", "cat"}},
		{name: "LocalCommand and a forward", args: []string{"-L", socket + ":127.0.0.1:" + taken, "-o", "PermitLocalCommand=yes",
			"-o", "LocalCommand=test -S " + socket + " && rm " + socket + " && echo listens", "host", "exit 4"}},
		{name: "LocalCommand that is not permitted", args: []string{"-o", "LocalCommand=echo local", "host", "echo remote"}},
		{name: "LocalCommand with a token that it has not", args: []string{"-o", "PermitLocalCommand=yes", "-o", "LocalCommand=echo %H", "host", "echo remote"}},
		{name: "LocalCommand that is none", args: []string{"-o", "PermitLocalCommand=yes", "-o", "LocalCommand=none", "host", "echo remote"}},
		{name: "not found", args: []string{"host", "exec no-such-command 2>/dev/null"}},
		{name: "KILL", args: []string{"host", "kill -KILL $$"}},
		{name: "TERM", args: []string{"host", "kill -TERM $$"}},
		{name: "shell", stdin: "echo in; exit 5\n", args: []string{"-T", "host"}},
		{name: "shell without a terminal", stdin: "exit 5\n", args: []string{"host"}},
		{name: "-q shell without a terminal", stdin: "exit 5\n", args: []string{"-q", "host"}},
		{name: "-T", args: []string{"-T", "host", "test -t 0"}},
		{name: "-t without a terminal", args: []string{"-t", "host", "test -t 0"}},
		{name: "-q -t without a terminal", args: []string{"-q", "-t", "host", "test -t 0"}},
		{name: "-tt without a terminal", args: []string{"-tt", "host", "test -t 0"}},
		{name: "-tt and an escape", stdin: "~.\n", args: []string{"-tt", "host", "sleep 60"}},
		{name: "RequestTTY force", args: []string{"-o", "RequestTTY=force", "host", "test -t 0"}},
		{name: "RequestTTY force and -T", args: []string{"-o", "RequestTTY=force", "-T", "host", "test -t 0"}},
		{name: "LogLevel ERROR", args: []string{"-o", "LogLevel=INFO", "-tt", "host", "true"}},
		{name: "RemoteCommand", args: []string{"-o", "RemoteCommand=echo remote %n; exit 4", "host"}},
		{name: "RemoteCommand and a command", args: []string{"-o", "RemoteCommand=true", "host", "true"}},
		{name: "subsystem", args: []string{"-s", "host", "nosuch"}},
		{name: "SessionType subsystem", args: []string{"-o", "SessionType=subsystem", "host", "sftp"}},
		{name: "environment", args: []string{"-o", "SendEnv=GB_* -GB_K*", "-o", "SetEnv=GB_SET=set GB_SENT=over",
			"host", "echo $GB_SENT, $GB_KEPT, $GB_SET"}},
		{name: "TERM by SetEnv", args: []string{"-tt", "-o", "SetEnv=TERM=ansi", "host", "echo $TERM"}},
		{name: "-L taken", args: []string{"-L", "127.0.0.1:" + taken + ":h:1", "host", "exit 3"}},
		{name: "-L taken and it matters", args: []string{"-o", "ExitOnForwardFailure=yes", "-L", "127.0.0.1:" + taken + ":h:1", "host", "exit 3"}},
		{name: "-R taken", args: []string{"-R", "127.0.0.1:" + taken + ":h:1", "host", "exit 3"}},
		{name: "-R taken and it matters", args: []string{"-o", "ExitOnForwardFailure=yes", "-R", "127.0.0.1:" + taken + ":h:1", "host", "exit 3"}},
		{name: "-D taken and cleared", args: []string{"-o", "ExitOnForwardFailure=yes", "-o", "ClearAllForwardings=yes", "-D", taken, "host", "exit 3"}},
		{name: "an empty -L", args: []string{"-L", "", "host", "true"}},
		{name: "an empty -R", args: []string{"-R", "", "host", "true"}},
		{name: "an empty -D", args: []string{"-D", "", "host", "true"}},
		{name: "sshd killed", args: []string{"host", "kill -KILL $PPID; sleep 60"}},
		{name: "-q sshd killed", args: []string{"-q", "host", "kill -KILL $PPID; sleep 60"}, anyLoss: true},
		{name: "a signal to us", args: []string{"host", loop}, signal: syscall.SIGTERM},
		{name: "an interrupt", args: []string{"host", loop}, signal: syscall.SIGINT},
		{name: "a hang-up", args: []string{"-tt", "host", loop}, signal: syscall.SIGHUP},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := func(ours bool) ending {
				cmd := h.command(t, ours, test.args...)
				end := runPlainly(t, cmd, test.stdin, test.signal)
				if test.anyLoss {
					end.stderr = strings.TrimSuffix(end.stderr, "Connection to 127.0.0.1 closed by remote host.\n")
				}
				return end
			}
			want := run(false)
			require.Equal(t, want, run(true))
			test.args = append([]string{overSSH}, test.args...)
			require.Equal(t, want, asOverSSH(run(true), test.signal), "over ssh")
		})
	}
}

// overSSH has the user's own ssh connect, and asOverSSH makes of what a session then ends with what
// it is without: ssh calls a connection shared if it does not end with the session, and says so
// even when a signal has ended it.
const overSSH = "-oRekeyLimit=1G"

func asOverSSH(end ending, sig syscall.Signal) ending {
	if sig != 0 {
		end.stdout = strings.TrimSuffix(end.stdout, "Shared connection to 127.0.0.1 closed.\n")
		end.stderr = strings.TrimSuffix(end.stderr, "Shared connection to 127.0.0.1 closed.\n")
	}
	lost := regexp.MustCompile(`(Connection to \S+ closed\.\n)(Connection to \S+ closed by remote host\.\n)`)
	for _, text := range []*string{&end.stdout, &end.stderr} {
		*text = strings.ReplaceAll(*text, "Shared connection to", "Connection to")
		*text = lost.ReplaceAllString(*text, "$2$1")
	}
	return end
}

func runPlainly(t *testing.T, cmd *exec.Cmd, stdin string, sig syscall.Signal) ending {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if sig != 0 {
		cmd.Stdout = &onText{seen: &stdout, text: "ready", do: func() { _ = cmd.Process.Signal(sig) }}
	}
	require.NoError(t, cmd.Start())
	status := exitStatus(t, waitFor(t, cmd))
	return ending{status, plain(stdout.String()), plain(stderr.String())}
}

// onText is what a test does when a text has been printed.
type onText struct {
	seen *bytes.Buffer
	text string
	do   func()
}

func (w *onText) Write(p []byte) (int, error) {
	n, err := w.seen.Write(p)
	if w.do != nil && strings.Contains(w.seen.String(), w.text) {
		w.do()
		w.do = nil
	}
	return n, err
}

func TestTerminalSessionsEndAsWithSSH(t *testing.T) {
	h := newHost(t)
	loop := `trap 'exit 42' INT; echo ready; while :; do sleep 0.05; done`
	cat := `stty -echo; echo ready; cat`
	for _, test := range []struct {
		name   string
		args   []string
		keys   string         // typed when "ready" is there
		late   string         // the answer to them, which the end may overtake
		signal syscall.Signal // sent then
	}{
		{name: "-t true", args: []string{"-t", "host", "true"}},
		{name: "-t status", args: []string{"-t", "host", "exit 3"}},
		{name: "-t -q", args: []string{"-t", "-q", "host", "exit 3"}},
		{name: "-t LogLevel ERROR", args: []string{"-t", "-o", "LogLevel=ERROR", "host", "exit 3"}},
		{name: "no terminal for a command", args: []string{"host", "test -t 0"}},
		{name: "-T", args: []string{"-T", "host", "test -t 0"}},
		{name: "-n -t", args: []string{"-n", "-t", "host", "test -t 0"}},
		{name: "both outputs", args: []string{"-t", "host", "echo out; echo err >&2"}},
		{name: "StdinNull", args: []string{"-t", "-o", "StdinNull=yes", "host", "test -t 0"}},
		{name: "-tt and StdinNull", args: []string{"-tt", "-o", "StdinNull=yes", "host", "test -t 0"}},
		{name: "LocalCommand", args: []string{"-t", "-o", "PermitLocalCommand=yes", "-o", "LocalCommand=test -t 0 && stty size", "host", "stty size"}},
		{name: "size, modes and type", args: []string{"-t", "host", "stty size; stty -g; echo $TERM"}},
		{name: "KILL", args: []string{"-t", "host", "kill -KILL $$"}},
		{name: "sshd killed", args: []string{"-t", "host", "kill -KILL $PPID; sleep 60"}},
		{name: "interrupt key", args: []string{"-t", "host", loop}, keys: "\x03"},
		{name: "end of file key", args: []string{"-t", "host", cat}, keys: "line\r\x04"},
		{name: "~.", args: []string{"-t", "host", cat}, keys: "~."},
		{name: "~. in a line", args: []string{"-t", "host", cat}, keys: "x~.\r\x04"},
		{name: "~~", args: []string{"-t", "host", cat}, keys: "~~.\r\x04"},
		{name: "-e none", args: []string{"-t", "-e", "none", "host", cat}, keys: "~.\r\x04"},
		{name: "-e ^A", args: []string{"-t", "-e", "^A", "host", cat}, keys: "~.\r\x01.", late: "~.\n"},
		{name: "-e %", args: []string{"-t", "-o", "EscapeChar=%", "host", cat}, keys: "~.\r%.", late: "~.\n"},
		{name: "SIGTERM", args: []string{"-t", "host", loop}, signal: syscall.SIGTERM},
		{name: "SIGHUP", args: []string{"-t", "host", loop}, signal: syscall.SIGHUP},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := func(ours bool) ending {
				s := onScreen(t, h.command(t, ours, test.args...))
				before := s.modes()
				if test.keys != "" || test.signal != 0 {
					s.expect("ready", 1)
					eventually(t, "raw mode", s.isRaw)
					s.keys(test.keys)
					if test.signal != 0 {
						require.NoError(t, s.cmd.Process.Signal(test.signal))
					}
				}
				status, text := s.waitKeepingModes(before)
				return ending{status: status, stdout: strings.Replace(plain(text), test.late, "", 1)}
			}
			want := run(false)
			require.Equal(t, want, run(true))
			test.args = append([]string{overSSH}, test.args...)
			require.Equal(t, want, asOverSSH(run(true), test.signal), "over ssh")
		})
	}
}

func TestTerminalFollowsTheSize(t *testing.T) {
	h := newHost(t)
	s := onScreen(t, h.command(t, true, "-t", "host", `trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.05; done`))
	s.expect("33 91", 1)
	eventually(t, "raw mode", s.isRaw)
	resize(t, s, 50, 100)
	s.expect("50 100", 1)
	status, _ := s.wait()
	require.Zero(t, status)
}

// When nothing comes from the server any more, the user can still leave at once.
func TestEscapeOnADeadLink(t *testing.T) {
	h := newHost(t)
	stopped := filepath.Join(env.ShortDir(t), "stopped")
	s := onScreen(t, h.command(t, true, "-t", "host", "echo ready; sleep 0.5; kill -STOP $PPID; touch "+stopped+"; exec sleep 60"))
	before := s.modes()
	s.expect("ready", 1)
	eventually(t, "raw mode", s.isRaw)
	eventually(t, "a stopped sshd", func() bool { _, err := os.Stat(stopped); return err == nil })
	s.keys("typed\r~.")
	s.expect("Connection to 127.0.0.1 closed.", 1)
	require.Equal(t, before, s.modes())
	require.Equal(t, 255, exitStatus(t, waitFor(t, s.cmd)))
}

// A shell with job control gets the terminal back for as long as it has it.
func TestSuspendAndContinue(t *testing.T) {
	h := newHost(t)
	shell := exec.Command(env.Tool(t, "bash"), "--norc", "--noprofile", "-i")
	program := h.command(t, true, "-t", "host", "stty -echo; echo rea''dy; cat")
	shell.Env = append(program.Env, "PS1=prompt> ")
	s := onScreen(t, shell)
	s.expect("prompt> ", 1)
	s.keys("stty -g | sed s/^/modes:/\r" + quoted(program.Args) + "\r")
	s.expect("ready", 1)
	s.keys("one\r~\x1a")
	s.expect("Stopped", 1)
	s.expect("prompt> ", 3)
	s.keys("stty -g | sed s/^/modes:/; echo sus''pended\r")
	s.expect("suspended", 1)
	s.keys("fg\r")
	eventually(t, "raw mode again", s.isRaw)
	s.keys("two\r~~three\r")
	s.expect("~three", 1)
	s.keys("~.")
	s.expect("closed.", 1)
	s.keys("echo status $?; stty -g | sed s/^/modes:/; exit\r")
	_, text := s.wait()
	require.Contains(t, text, "one\r\n")
	require.Contains(t, text, "two\r\n~three\r\n")
	require.Contains(t, text, "status 255")
	modes := regexp.MustCompile(`modes:([0-9a-f:]+)`).FindAllStringSubmatch(text, -1)
	require.Len(t, modes, 3)
	require.Equal(t, modes[0], modes[1])
	require.Equal(t, modes[0], modes[2])
}

func quoted(args []string) string {
	var words []string
	for _, arg := range args {
		words = append(words, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

// A full-screen program works.
func TestEditorOnTheHost(t *testing.T) {
	editor := env.Tool(t, "vim")
	h := newHost(t)
	file := filepath.Join(env.ShortDir(t), "text")
	s := onScreen(t, h.command(t, true, "-t", "host", editor+" -u NONE -i NONE "+file))
	s.expect("[New", 1)
	eventually(t, "raw mode", s.isRaw)
	s.keys("ihello\x1b")
	s.expect("hello", 1)
	resize(t, s, 20, 60)
	s.expect("\x1b[H\x1b[J", 2) // drawn again
	s.keys(":set lines? columns?\r")
	s.expect("columns=60", 1)
	s.keys("\r:wq\r")
	status, _ := s.wait()
	require.Zero(t, status)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(text))
}

// A command on the host can use the user's forwards as soon as it runs.
func TestForwardsAreThereForTheCommand(t *testing.T) {
	h := newHost(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var answering sync.WaitGroup
	answering.Go(func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = io.WriteString(conn, "through the forward")
			_ = conn.Close()
		}
	})
	socket := filepath.Join(env.ShortDir(t), "far")
	cmd := h.command(t, true, "-R", socket+":"+l.Addr().String(), "host", "socat", "-u", "UNIX-CONNECT:"+socket, "-")
	env.Tool(t, "socat")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "through the forward", string(out))
	answering.Wait()
}

// A forward that fails is named, and ends the program if the user wants that.
func TestForwardsThatFail(t *testing.T) {
	h := newHost(t)
	taken := "127.0.0.1:" + strconv.Itoa(h.srv.Port)
	port := strconv.Itoa(h.srv.Port)
	for _, test := range []struct{ flag, warning, ending string }{
		{"-L", "bind [127.0.0.1]:" + port + ": Address already in use", "Could not request local forwarding."},
		{"-R", "Warning: remote port forwarding failed for listen port " + port, "Error: remote port forwarding failed for listen port " + port},
	} {
		for matters, status := range map[string]int{"no": 3, "yes": 255} {
			cmd := h.command(t, true, "-o", "ExitOnForwardFailure="+matters, test.flag, taken+":h:1", "host", "exit 3")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			require.Equal(t, status, exitStatus(t, cmd.Run()), "%s %s: %s", test.flag, matters, &stderr)
			if matters == "no" {
				require.Contains(t, stderr.String(), test.warning)
			} else {
				require.Contains(t, stderr.String(), test.ending)
			}
		}
	}
}
