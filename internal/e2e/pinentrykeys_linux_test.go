package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/testkit/gpghome"
)

// cancel types keys at a prompt, the last of which cancels it: that is all that ends.
func (d *seat) cancel(t *testing.T, round int, keys string) {
	t.Helper()
	raw, before := d.modes(t), d.typed(t)
	d.tell(t, fmt.Sprintf("go%d", round))
	d.expect(t, "remote site", round)
	eventually(t, func() bool { return d.modes(t).Lflag&unix.ISIG != 0 }, "the pinentry has set no mode: round %d", round)
	d.keys(t, keys)
	eventually(t, func() bool { return fileHas(d.file(fmt.Sprintf("ended%d", round)), "\n") }, "gpg does not end, round %d: %q", round, d.seen.String())
	said, err := os.ReadFile(d.file(fmt.Sprintf("said%d", round)))
	require.NoError(t, err)
	require.Contains(t, string(said), "End of file", "round %d", round) // which is all that the agent hears of a pinentry
	eventually(t, func() bool { return d.modes(t) == raw }, "raw mode again, round %d", round)
	d.keys(t, "a")
	eventually(t, func() bool { return d.typed(t) != before }, "the key after the prompt, round %d", round)
	require.Equal(t, before+"a", d.typed(t), "round %d", round)
}

// Ctrl-C and Ctrl-\ at a prompt are for the prompt, and Ctrl-Z is for nobody, though the
// pinentry has the terminal make signals of them, for us. One prompt soon follows another.
func TestSignalKeysAtAPrompt(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	// A shell with jobs: nothing that has no such parent can be stopped by a key.
	p := d.run(t, "bash", append([]string{"-mc", `"$@"; exit $?`, "bash", program}, d.args("-t", "host", d.rounds())...)...)
	d.expect(t, "started", 1)
	eventually(t, func() bool { return fileHas(d.file("typed"), "") }, "the host reads the keys")
	for i, keys := range []string{"\x03", "\x1c", "\x1a\x03", secret[:3] + "\x1a\x1c"} {
		d.cancel(t, i+1, keys)
	}
	d.keys(t, "\r~.")
	require.Equal(t, 255, p.wait(t).code)
	require.Equal(t, d.before, d.modes(t), "the terminal is as it was")
}

// A SIGTERM ends the session at a prompt, too.
func TestTerminatedAtAPrompt(t *testing.T) {
	d := stage{key: gpghome.KeySpec{Passphrase: secret}}.set(t).seat(t, "pinentry-curses")
	p := d.run(t, program, d.args("-t", "host", d.rounds())...)
	d.expect(t, "started", 1)
	d.tell(t, "go1")
	d.expect(t, "remote site", 1)
	p.signal(t, syscall.SIGTERM)
	require.Equal(t, 255, p.wait(t).code)
}
