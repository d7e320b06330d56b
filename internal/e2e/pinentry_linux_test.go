package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/pinentry"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
)

// secret is the key's passphrase; none of it is in anything else that is typed.
const secret = "Xq-kz-Wv"

// prompts is how often each program asks in a test.
const prompts = 10

// textPrograms are the pinentries that ask on a terminal.
func textPrograms() []string { return []string{"pinentry-curses", "pinentry-tty"} }

// A seat is a scene whose user sits at a terminal, where the agent's pinentry asks
// for the passphrase of the key.
type seat struct {
	*scene
	pinentry      string
	master, slave *os.File
	seen          output // what was on the screen
	before        unix.Termios
}

// seat opens the terminal, and has the agent ask there with the program.
func (s *scene) seat(t *testing.T, pinentry string) *seat {
	t.Helper()
	path := env.Tool(t, pinentry)
	master, slave, err := fakesshd.OpenPTY()
	require.NoError(t, err)
	d := &seat{scene: s, pinentry: pinentry, master: master, slave: slave}
	require.NoError(t, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 91, Row: 33}))
	d.before = d.modes(t)
	var reading sync.WaitGroup
	reading.Go(func() { d.read() })
	t.Cleanup(func() {
		d.endPrompts()
		_ = slave.Close()
		require.NoError(t, s.laptop.StopAgent(context.Background())) // a pinentry has the terminal no more
		reading.Wait()
		_ = master.Close()
	})
	link := filepath.Join(s.laptop.Dir(), "pinentry")
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, s.laptop.StartAgent(t.Context()))
	d.askHere(t)
	s.importKey(t)
	return d
}

// endPrompts: a pinentry-curses that has lost its agent and its terminal takes all of a CPU.
func (d *seat) endPrompts() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pid, err := d.laptop.AgentPID(ctx)
	if err != nil {
		return
	}
	open, _ := pinentry.OfAgent(pid)
	for _, prompt := range open {
		_ = prompt.End(ctx)
	}
}

// askHere is what a user's shell does who wants pinentry on his terminal.
func (d *seat) askHere(t *testing.T) {
	t.Helper()
	_, _, err := d.laptop.Run(t.Context(), nil, "env", "GPG_TTY="+d.name(t), "TERM=xterm", "gpg-connect-agent", "--no-autostart", "updatestartuptty", "/bye")
	require.NoError(t, err)
}

func (d *seat) name(t *testing.T) string {
	t.Helper()
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", d.slave.Fd()))
	require.NoError(t, err)
	return name
}

func (d *seat) read() {
	buf := make([]byte, 4096)
	for {
		n, err := d.master.Read(buf)
		_, _ = d.seen.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

func (d *seat) modes(t *testing.T) unix.Termios {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(d.slave.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return *modes
}

// run starts a program at the terminal.
func (d *seat) run(t *testing.T, name string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return launchOn(t, cmd, d.laptop, d.slave)
}

// keys are typed, one after the other.
func (d *seat) keys(t *testing.T, text string) {
	t.Helper()
	for _, key := range []byte(text) {
		_, err := d.master.Write([]byte{key})
		require.NoError(t, err)
		time.Sleep(2 * time.Millisecond) // so that each is read alone
	}
}

// expect waits until the text was on the screen n times.
func (d *seat) expect(t *testing.T, text string, n int) {
	t.Helper()
	eventually(t, func() bool { return strings.Count(d.seen.String(), text) >= n }, "not %d times on the screen: %q: %q", n, text, d.seen.String())
}

// file is one of the account's.
func (d *seat) file(name string) string { return filepath.Join(d.host.Home, name) }

// typed is all that the host has got of the keys.
func (d *seat) typed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(d.file("typed"))
	require.NoError(t, err)
	return string(text)
}

// rounds is a command for the host that keeps all keys, writes without end, and signs
// whenever it is told to.
func (d *seat) rounds() string {
	return `stty raw -echo
cat /dev/tty >typed &
(while :; do printf 'noise\r\n'; sleep 0.02; done) &
trap 'echo >>winched' WINCH
echo started
for i in 1 2 3 4 5 6 7 8 9 10; do
	while [ ! -e go$i ]; do sleep 0.02; done
	echo hello | gpg --batch --no-tty -u ` + d.key.Fingerprint + ` -b -o sig$i 2>said$i
	echo $? >ended$i
done
while [ ! -e end ]; do sleep 0.02; done
kill $(jobs -p)
exit 7`
}

func (d *seat) tell(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.WriteFile(d.file(name), nil, 0o644))
}

// sign is one round: what is typed at the prompt is the prompt's, and what is typed
// before and after is the host's.
func (d *seat) sign(t *testing.T, round int) {
	t.Helper()
	require.NoError(t, d.laptop.ForgetPassphrases(t.Context()))
	raw := d.modes(t)
	expected := d.typed(t) + "b"
	d.keys(t, "b")
	eventually(t, func() bool { return d.typed(t) == expected }, "the key before the prompt")
	d.tell(t, fmt.Sprintf("go%d", round))
	d.expect(t, "remote site", round)
	time.Sleep(50 * time.Millisecond) // the prompt is drawn to its end
	if d.pinentry == "pinentry-tty" { // which takes an LF only, as Enter is in no raw mode
		eventually(t, func() bool { return d.modes(t).Iflag&unix.ICRNL != 0 }, "Enter is not what pinentry waits for")
	}
	drawn := len(d.seen.String())
	d.keys(t, secret)
	time.Sleep(50 * time.Millisecond)
	require.NotContains(t, d.seen.String()[drawn:], "noise", "round %d", round)
	d.keys(t, "\r")
	eventually(t, func() bool { return fileHas(d.file(fmt.Sprintf("ended%d", round)), "\n") }, "gpg does not end: %q", d.seen.String()[drawn:])
	said, _ := os.ReadFile(d.file(fmt.Sprintf("said%d", round)))
	signature, err := os.ReadFile(d.file(fmt.Sprintf("sig%d", round)))
	require.NoError(t, err, "round %d: %s", round, said)
	d.verify(t, signature, "hello\n")
	eventually(t, func() bool { return d.modes(t) == raw }, "raw mode again")
	eventually(t, func() bool { return fileLines(d.file("winched")) >= round }, "the size changes, so that the screen is painted anew")
	d.keys(t, "a")
	eventually(t, func() bool { return d.typed(t) != expected }, "the key after the prompt")
	require.Equal(t, expected+"a", d.typed(t), "round %d", round)
}

func fileHas(path, text string) bool {
	content, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(content), text)
}

func fileLines(path string) int {
	content, _ := os.ReadFile(path)
	return strings.Count(string(content), "\n")
}

func TestPassphraseIsNotTheSessions(t *testing.T) {
	for _, pinentry := range textPrograms() {
		t.Run(pinentry, func(t *testing.T) {
			d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, pinentry)
			p := d.run(t, program, d.args("-t", "host", d.rounds())...)
			d.expect(t, "started", 1)
			eventually(t, func() bool { return fileHas(d.file("typed"), "") }, "the host reads the keys")
			for round := 1; round <= prompts; round++ {
				d.sign(t, round)
			}
			d.tell(t, "end")
			require.Equal(t, 7, p.wait(t).code)
			require.Equal(t, strings.Repeat("ba", prompts), d.typed(t))
			require.Equal(t, d.before, d.modes(t), "the terminal is as it was")
		})
	}
}

// Another process may be the bridge, and has the operation.
func TestPassphraseOfAnotherProcesssBridge(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	d.background(t).up(t)
	p := d.run(t, program, d.args("-t", "host", d.rounds())...)
	d.expect(t, "started", 1)
	eventually(t, func() bool { return fileHas(d.file("typed"), "") }, "the host reads the keys")
	d.sign(t, 1)
	p.signal(t, syscall.SIGTERM)
	<-p.ended
}

// A session without a terminal on the host reads lines of the one here.
func TestPassphraseIsNotInALine(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-tty")
	p := d.run(t, program, d.args("host", "exec 3<&0; cat <&3 >typed & echo hello | gpg --batch --no-tty -u "+d.key.Fingerprint+" -b -o sig1; echo $? >ended1; wait")...)
	d.expect(t, "remote site", 1)
	time.Sleep(50 * time.Millisecond)
	d.keys(t, secret+"\r")
	eventually(t, func() bool { return fileHas(d.file("ended1"), "0\n") }, "no signature: %q", d.seen.String())
	d.keys(t, "after\r\x04")
	require.Zero(t, p.wait(t).code)
	require.Equal(t, "after\n", d.typed(t))
	require.Equal(t, d.before, d.modes(t), "the terminal is as it was")
}

// Without a prompt on the terminal, as when a token waits for its touch, all keys are
// the host's, Ctrl-C among them.
func TestKeysWhileAnOperationWaits(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	require.NoError(t, d.laptop.SetPinentry(gpghome.PinentryNever()))
	d.run(t, program, d.args("-t", "host", d.rounds())...)
	d.expect(t, "started", 1)
	d.tell(t, "go1")
	_, err := d.laptop.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	d.keys(t, "x\x03")
	eventually(t, func() bool { return d.typed(t) == "x\x03" }, "the host has not got the keys")
}
