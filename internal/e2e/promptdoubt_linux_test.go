package e2e

import (
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

const asksInText = "#!/bin/sh\nexec pinentry-curses \"$@\"\n"

// asksBy has the agent ask by a script of this name, in an environment that has the
// terminal and these variables.
func (d *seat) asksBy(t *testing.T, name, script string, env ...string) {
	t.Helper()
	program, link := filepath.Join(d.laptop.Dir(), name), filepath.Join(d.laptop.Dir(), "pinentry")
	require.NoError(t, os.Remove(link))
	require.NoError(t, d.laptop.SetPinentry(script)) // a regular file in the link's place
	require.NoError(t, os.Rename(link, program))
	require.NoError(t, os.Symlink(program, link))
	args := append([]string{"GPG_TTY=" + d.name(t), "TERM=xterm"}, env...)
	_, _, err := d.laptop.Run(t.Context(), nil, "env", append(args, "gpg-connect-agent", "--no-autostart", "updatestartuptty", "/bye")...)
	require.NoError(t, err)
}

// display is one that accepts connections.
func display(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "display")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "wayland"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// A pinentry whose name tells nothing, and one with windows that cannot open any, may ask
// on the terminal as pinentry-curses does, and are not asked where an ssh reads. Whatever
// they are called here, each is pinentry-curses.
func TestNoPromptByADoubtfulPinentry(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	b := d.background(t)
	b.up(t)
	d.ssh(t)
	stale := filepath.Join(t.TempDir(), "stale")
	for _, c := range []struct{ name, env string }{
		{"my-pinentry", "A=b"},
		{"pinentry-gtk-2", "DISPLAY=:59000"},
		{"pinentry-gnome3", "WAYLAND_DISPLAY=" + display(t)},
	} {
		d.asksBy(t, c.name, asksInText, "DISPLAY=", "WAYLAND_DISPLAY=", "DBUS_SESSION_BUS_ADDRESS=unix:path="+stale, c.env)
		time.Sleep(1100 * time.Millisecond) // what is known of the agent counts for a second
		conversation := d.converse(t)
		require.Equal(t, noPinentry, conversation.use(t, d.key), c.name)
		require.NoError(t, conversation.Close())
		b.await(t, func(s share.Status) bool {
			return s.Problem != nil && s.Problem.Kind == share.RefusedPrompt && strings.Contains(s.Problem.Text, "pinentry ("+c.name+") may ask on "+d.name(t))
		})
	}
	require.NotContains(t, d.seen.String(), "assphrase", "a prompt")
	d.keys(t, secret)
	eventually(t, func() bool { return d.typed(t) == secret }, "the host has lost keys: %q", d.typed(t))
}

// A pinentry that most likely opens a window is asked, and ended where it opens the
// terminal that an ssh reads; what is typed then is not the passphrase yet.
func TestStrayPromptIsEnded(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	b := d.background(t)
	b.up(t)
	d.asksBy(t, "my-pinentry", asksInText, "WAYLAND_DISPLAY="+display(t))
	d.ssh(t)
	raw := d.modes(t)
	for range 3 {
		conversation := d.converse(t)
		began := time.Now()
		require.Contains(t, conversation.use(t, d.key), "ERR ")
		t.Log("the prompt was over after", time.Since(began))
		require.NoError(t, conversation.Close())
	}
	b.await(t, func(s share.Status) bool {
		return s.Problem != nil && s.Problem.Kind == share.RefusedPrompt && strings.Contains(s.Problem.Text, "pinentry asked on "+d.name(t)+", where ssh (process ")
	})
	require.Equal(t, raw, d.modes(t), "pinentry has put the terminal back")
	d.keys(t, secret)
	eventually(t, func() bool { return d.typed(t) == secret }, "the host has lost keys: %q", d.typed(t))
}

// A prompt may be open on the terminal already when an ssh comes to read it.
func TestStrayPromptFromBeforeIsEnded(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	b := d.background(t)
	b.up(t)
	conversation := d.converse(t)
	require.Equal(t, "OK\n", conversation.say(t, "SIGKEY "+d.key.Keygrip))
	require.Equal(t, "OK\n", conversation.say(t, "SETHASH 8 "+strings.Repeat("ab", 32)))
	_, err := conversation.Write([]byte("PKSIGN\n"))
	require.NoError(t, err)
	d.expect(t, "assphrase", 1)
	d.ssh(t)
	require.Contains(t, conversation.hear(t), "ERR ")
	b.await(t, func(s share.Status) bool { return s.Problem != nil && s.Problem.Kind == share.RefusedPrompt })
}

// A pinentry that has its display works, also where an ssh reads the terminal, and when
// the agent is slow: after a suspend it may take some seconds to answer.
func TestSlowAgentAsksInAWindow(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	b := d.background(t)
	b.up(t)
	d.asksBy(t, "pinentry-qt", gpghome.PinentryAnswers(secret), "WAYLAND_DISPLAY="+display(t))
	d.ssh(t)
	d.scene.sign(t)
	require.NoError(t, d.laptop.ForgetPassphrases(t.Context()))
	time.Sleep(1100 * time.Millisecond) // what is known of the agent counts for a second
	goOn := d.stopAgent(t)
	slow := time.AfterFunc(3*time.Second, goOn)
	defer slow.Stop()
	d.scene.sign(t)
	require.Nil(t, b.status(t)[0].Problem)
}
