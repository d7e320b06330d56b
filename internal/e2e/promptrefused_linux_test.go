package e2e

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/gpghome"
)

// signHere has gpg on the host sign, and say how it ended.
func (s *scene) signHere() string {
	return "echo hello | gpg --batch --no-tty -u " + s.key.Fingerprint + ` -b -o sig1; echo "status $?"`
}

// requireRefused: nobody was asked, gpg was told, and so is the user.
func (d *seat) requireRefused(t *testing.T, b *background) {
	t.Helper()
	require.Contains(t, d.seen.String(), "signing failed: No pinentry")
	require.NotContains(t, d.seen.String(), "remote site", "a prompt")
	s := b.await(t, func(s share.Status) bool { return s.Problem != nil && s.State == share.Up })
	require.Equal(t, share.RefusedPrompt, s.Problem.Kind)
	require.Contains(t, s.Problem.Text, " ask on "+d.name(t)+", where ssh (process ")
	require.Contains(t, s.Problem.Remedy, "gpg-bridge ssh")
	r := b.do(t, "status")
	require.Contains(t, r.stdout, " ask on "+d.name(t))
	logs, err := filepath.Glob(d.laptop.Dir() + "/gpg-bridge/*.log")
	require.NoError(t, err)
	require.Len(t, logs, 1)
	require.True(t, fileHas(logs[0], " ask on "+d.name(t)))
}

// In the terminal of the user's own ssh nobody is asked. What needs no prompt works.
func TestNoPromptWhereSSHReads(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	b := d.background(t)
	b.up(t)

	// The agent learns the passphrase; there is no ssh in the terminal yet.
	link := filepath.Join(d.laptop.Dir(), "pinentry")
	require.NoError(t, os.Remove(link))
	require.NoError(t, d.laptop.SetPinentry(gpghome.PinentryAnswers(secret)))
	d.scene.sign(t)
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink("/usr/bin/pinentry-curses", link))

	p := d.run(t, "ssh", "-F", d.sshd.ConfigFile, "-tt", "host", d.signHere()+"; read line; rm sig1; "+d.signHere()+"; read line; stty raw -echo; read line")
	d.expect(t, "status 0", 1)
	require.Nil(t, b.status(t)[0].Problem)
	require.NoError(t, d.laptop.ForgetPassphrases(t.Context()))
	d.keys(t, "\r")
	d.expect(t, "status 2", 1)
	d.requireRefused(t, b)
	require.NoError(t, p.cmd.Process.Kill())
	<-p.ended

	// Now the terminal is its own again, which is known as soon as the last look is too old.
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, os.Remove(link))
	require.NoError(t, d.laptop.SetPinentry(gpghome.PinentryAnswers(secret)))
	d.scene.sign(t)
}

// The proxy's user sees a line in the terminal, in which ssh was started by a shell: the end
// of an ssh that leads the session is one more SIGHUP for its proxy, which ends at once then.
func TestNoPromptWhereAProxysSSHReads(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	proxied := d.proxied(t)
	p := d.run(t, "sh", "-c", `"$@" && echo over; read line`, "sh", "ssh", "-F", proxied.config, "dev", `while [ ! -S "$(gpgconf --list-dirs agent-socket)" ]; do sleep 0.02; done; `+d.signHere())
	d.expect(t, "status 2", 1)
	d.expect(t, "gpg-bridge: warning: gpg on the host was refused", 1)
	d.expect(t, "over", 1)
	d.keys(t, "\r")
	require.Zero(t, p.wait(t).code)
	d.requireRefused(t, proxied.background)
	require.NotContains(t, strings.ToLower(d.seen.String()), "no bridge")
}

// Nor in a session of gpg-bridge ssh that the user's ssh has, which reads the terminal then.
func TestNoPromptInASessionOverSSH(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	p := d.run(t, program, "ssh", "-F", d.sshd.ConfigFile, "-C", "-tt", "host", d.signHere()+"; read line")
	d.expect(t, "status 2", 1)
	require.Contains(t, d.seen.String(), "signing failed: No pinentry")
	require.NotContains(t, d.seen.String(), "remote site", "a prompt")
	d.expect(t, "gpg-bridge: warning: gpg on the host was refused", 1)
	d.keys(t, "\r")
	require.Zero(t, p.wait(t).code)
}

// A hostConversation is one with the agent that something on the host, no gpg, keeps as
// long as it likes.
type hostConversation struct {
	net.Conn
	in *bufio.Reader
}

func (s *scene) converse(t *testing.T) *hostConversation {
	t.Helper()
	conn, err := net.Dial("unix", s.socket(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c := &hostConversation{conn, bufio.NewReader(conn)}
	require.Contains(t, c.hear(t), "OK ")
	return c
}

// hear returns the next line that is no status.
func (c *hostConversation) hear(t *testing.T) string {
	t.Helper()
	for {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		line, err := c.in.ReadString('\n')
		require.NoError(t, err, "a prompt is open?")
		if !strings.HasPrefix(line, "S ") {
			return line
		}
	}
}

// say returns the answer.
func (c *hostConversation) say(t *testing.T, line string) string {
	t.Helper()
	_, err := c.Write([]byte(line + "\n"))
	require.NoError(t, err)
	return c.hear(t)
}

// use names the key and signs, and returns the last answer.
func (c *hostConversation) use(t *testing.T, key gpghome.Key) string {
	t.Helper()
	require.Equal(t, "OK\n", c.say(t, "SIGKEY "+key.Keygrip))
	require.Equal(t, "OK\n", c.say(t, "SETHASH 8 "+strings.Repeat("ab", 32)))
	return c.say(t, "PKSIGN")
}

const noPinentry = "ERR 67108949 No pinentry <GPG Agent>\n"

// ssh is the user's own, in the terminal, and returns when the host has the keys.
func (d *seat) ssh(t *testing.T) {
	t.Helper()
	p := d.run(t, "ssh", "-F", d.sshd.ConfigFile, "-tt", "host", "stty raw -echo; echo ready; cat >typed")
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	d.expect(t, "ready", 1)
}

// A host keeps conversations from before there was an ssh in the terminal: idle, and with
// the text that is to be decrypted still to come.
func TestNoPromptInAConversationFromBefore(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	d.background(t).up(t)
	idle, decrypting := d.converse(t), d.converse(t)
	require.Equal(t, "OK\n", idle.say(t, "RESET"))
	require.Equal(t, "OK\n", decrypting.say(t, "SETKEY "+d.key.SubKeygrip))
	require.Contains(t, decrypting.say(t, "PKDECRYPT"), "INQUIRE CIPHERTEXT")
	d.ssh(t)

	require.Equal(t, noPinentry, idle.use(t, d.key))
	_, err := decrypting.Write([]byte("D (7:enc-val(3:rsa(1:a4:abcd)))\n"))
	require.NoError(t, err)
	require.Equal(t, noPinentry, decrypting.say(t, "END"))
	require.NotContains(t, d.seen.String(), "assphrase", "a prompt")
	for _, c := range []*hostConversation{idle, decrypting} { // which is as it was
		require.Equal(t, "OK\n", c.say(t, "RESET"))
		require.Equal(t, noPinentry, c.use(t, d.key))
	}
	d.keys(t, secret)
	eventually(t, func() bool { return d.typed(t) == secret }, "the host has lost keys: %q", d.typed(t))
}

// An agent that is too busy to say where it would ask, and has never said it, does not ask
// while an ssh reads a terminal.
func TestNoPromptWhereItIsNotKnown(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	b := d.background(t)
	b.up(t)
	d.ssh(t)
	c := d.converse(t)
	goOn := d.stopAgent(t)
	_, err := c.Write([]byte("SIGKEY " + d.key.Keygrip + "\n"))
	require.NoError(t, err)
	time.Sleep(2500 * time.Millisecond) // longer than the bridge waits
	goOn()
	require.Equal(t, "OK\n", c.hear(t))
	require.Equal(t, noPinentry, c.use(t, d.key))
	require.NotContains(t, d.seen.String(), "assphrase", "a prompt")
	require.Contains(t, b.status(t)[0].Problem.Text, "it could not be found out where pinentry would ask")
}

// However often a host tries, the user reads of it once.
func TestRefusedPromptsAreToldOnce(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	p := d.scene.bridge(t)
	d.ssh(t)
	for range 30 {
		c := d.converse(t)
		require.Equal(t, noPinentry, c.use(t, d.key))
		require.NoError(t, c.Close())
	}
	const warning = "warning: gpg on the host was refused"
	p.waitFor(t, &p.stderr, warning)
	require.Equal(t, 1, strings.Count(p.stderr.String(), warning))
}
