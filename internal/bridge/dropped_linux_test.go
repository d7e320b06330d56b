package bridge

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
)

// useKey sends the commands with which a program on the host uses a key. It does not wait for
// the answer to the last one.
func useKey(t *testing.T, h *host, lines ...string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", h.socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(within)))
	in := bufio.NewReader(conn)
	for _, line := range lines {
		_, err := in.ReadString('\n') // the greeting, or the answer to the line before
		require.NoError(t, err)
		_, err = fmt.Fprintln(conn, line)
		require.NoError(t, err)
	}
	return conn, in
}

func (l *laptop) signature() []string {
	return []string{"SIGKEY " + l.key.Keygrip, "SETHASH 8 " + strings.Repeat("ab", 32), "PKSIGN"}
}

// agentDescriptors returns how many descriptors the laptop's agent has open.
func agentDescriptors(t *testing.T, l *laptop) int {
	t.Helper()
	pid, err := l.local().Agent.ProcessID(t.Context())
	require.NoError(t, err)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	return len(entries)
}

func isTold(u *up, what AbandonedError) bool {
	return slices.ContainsFunc(u.all(), func(err error) bool { told, ok := err.(*AbandonedError); return ok && *told == what })
}

// TestDroppedUsesAreFew: again and again a program on the host begins to use a key and leaves.
// A few of these uses get to the agent, the others get an error, and the user is told. Once
// the prompts are cancelled the key can be used.
func TestDroppedUsesAreFew(t *testing.T) {
	t.Parallel()
	alice, h := newAskingLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{timing: quick})
	u.requireVerified(t)
	before := agentDescriptors(t, alice)
	for range 60 {
		conn, _ := useKey(t, h, alice.signature()...)
		require.NoError(t, conn.Close())
	}
	_, in := useKey(t, h, alice.signature()...)
	answer, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, assuan.ErrTimeout, answer)
	require.Less(t, agentDescriptors(t, alice), before+30)
	eventually(t, func() bool { return isTold(u, AbandonedError{Refused: true}) })
	eventually(t, func() bool { what, _ := u.Health(); return what == None && u.Load().Conversations <= 1 })
	require.NoError(t, alice.SetPinentry(gpghome.PinentryAnswers("secret")))
	require.NoError(t, h.sign(t, alice))
}

// TestPromptsOfManyAreCancelledInARow: many clients leave at once, and their prompts open one
// after the other.
func TestPromptsOfManyAreCancelledInARow(t *testing.T) {
	t.Parallel()
	alice, h := newAskingLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{timing: quick})
	u.requireVerified(t)
	var conns []net.Conn
	for range 7 {
		conn, _ := useKey(t, h, alice.signature()...)
		conns = append(conns, conn)
	}
	_, err := alice.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	if keepsPrompts(t, alice) {
		eventually(t, func() bool { what, _ := u.Health(); return what == Blocked })
	}
	eventually(t, func() bool { what, _ := u.Health(); return what == None && u.Load().Conversations == 0 })
	require.NoError(t, alice.SetPinentry(gpghome.PinentryAnswers("secret")))
	require.NoError(t, h.sign(t, alice))
}

// TestUnfinishedDecryptionHidesNoPrompt: a client that does not send the ciphertext has no
// prompt, and does not keep another's from being cancelled.
func TestUnfinishedDecryptionHidesNoPrompt(t *testing.T) {
	t.Parallel()
	alice, h := newAskingLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{timing: quick})
	u.requireVerified(t)
	_, in := useKey(t, h, "SETKEY "+alice.key.SubKeygrip, "PKDECRYPT")
	for line := ""; !strings.HasPrefix(line, "INQUIRE CIPHERTEXT"); {
		var err error
		line, err = in.ReadString('\n')
		require.NoError(t, err)
	}
	time.Sleep(2 * promptSlack)
	conn, _ := useKey(t, h, alice.signature()...)
	prompt, err := alice.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	eventually(t, func() bool { return !prompt.Running() })
}
