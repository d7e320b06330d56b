package e2e

import (
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/gpghome"
)

// gpg on the host is killed while its prompt is open, and another program is connected to the
// agent, too: an agent that keeps the prompt blocks all that follow. The status and the log say
// so, and what to do; who waits behind it is served as soon as the other program has gone, since
// the prompt is nobody's then.
func TestBackgroundBlockedByAPrompt(t *testing.T) {
	b := stage{key: gpghome.KeySpec{Passphrase: "secret"}}.set(t).background(t)
	require.NoError(t, b.laptop.SetPinentry(gpghome.PinentryNever()))
	b.up(t)
	other, err := net.Dial("unix", b.extraSocket(t))
	require.NoError(t, err)
	defer other.Close()

	killed := b.host.Command("gpg", "--batch", "--no-tty", "-u", b.key.Fingerprint, "-b", "-o", "-")
	killed.Stdin = strings.NewReader("hello\n")
	require.NoError(t, killed.Start())
	prompt, err := b.laptop.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	require.NoError(t, killed.Process.Kill())
	_ = killed.Wait()
	if version, _, err := b.laptop.Run(t.Context(), nil, "gpg-agent", "--version"); err == nil && !strings.Contains(string(version), " 2.2.") {
		eventually(t, func() bool { return !prompt.Running() }, "a newer agent cancels it")
		require.Equal(t, share.Up, b.status(t)[0].State)
		return
	}
	blocked := b.await(t, func(s share.Status) bool { return s.State == share.Blocked })
	require.Contains(t, blocked.Problem.Text, "most likely nobody waits for any more")
	require.Contains(t, blocked.Problem.Remedy, "cancel it")
	require.True(t, prompt.Running(), "it may be the other program's")

	require.NoError(t, b.laptop.SetPinentry(gpghome.PinentryAnswers("secret")))
	var signing sync.WaitGroup
	var signature, said []byte
	signing.Go(func() {
		signature, said, err = b.onHost(strings.NewReader("hello\n"), "gpg", "--batch", "--no-tty", "-u", b.key.Fingerprint, "-b", "-o", "-")
	})
	eventually(t, func() bool {
		log, _ := os.ReadFile(b.dir.LogPath(blocked.ID))
		return strings.Contains(string(log), "gpg on the host waits behind a prompt")
	}, "who waits is not mentioned")
	_ = other.Close()
	signing.Wait()
	require.NoError(t, err, "%s", said)
	b.verify(t, signature, "hello\n")
	up := b.await(t, func(s share.Status) bool { return s.State == share.Up })
	require.False(t, prompt.Running())
	require.Equal(t, blocked.PID, up.PID)
}
