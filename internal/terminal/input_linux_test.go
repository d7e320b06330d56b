package terminal

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/fakesshd"
)

// What is typed while somebody else reads the terminal is left to them.
func TestTerminalInputLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	var lent atomic.Bool
	master, input := rawTerminal(t, func() bool { return !lent.Load() })
	keys := make(chan string)
	go func() {
		defer close(keys)
		buf := make([]byte, 16)
		for {
			n, err := input.Read(buf)
			if err != nil {
				return
			}
			keys <- string(buf[:n])
		}
	}()
	_, err := master.WriteString("a")
	require.NoError(t, err)
	require.Equal(t, "a", <-keys)
	lent.Store(true)
	_, err = master.WriteString("secret")
	require.NoError(t, err)
	select {
	case key := <-keys:
		require.Fail(t, "it was read", "%q", key)
	case <-time.After(5 * freeInterval):
	}
	lent.Store(false)
	require.Equal(t, "secret", <-keys, "nobody else has read it")
	lent.Store(true)
	require.NoError(t, input.Close())
	_, more := <-keys
	require.False(t, more, "Close ends the waiting")
}

// What was read while somebody else began to read the terminal is dropped.
func TestTerminalInputDropsWhatItTookByMistake(t *testing.T) {
	t.Parallel()
	looks := 0
	var ended atomic.Bool
	master, input := rawTerminal(t, func() bool { looks++; return looks != 2 || ended.Load() })
	_, err := master.WriteString("secret")
	require.NoError(t, err)
	read := make(chan string)
	go func() {
		buf := make([]byte, 16)
		n, _ := input.Read(buf)
		read <- string(buf[:n])
	}()
	select {
	case key := <-read:
		require.Fail(t, "it was passed on", "%q", key)
	case <-time.After(5 * freeInterval):
	}
	ended.Store(true)
	_, err = master.WriteString("k")
	require.NoError(t, err)
	require.Equal(t, "k", <-read)
}

// rawTerminal returns the other end of a terminal in raw mode, and its input.
func rawTerminal(t *testing.T, isFree func() bool) (master io.StringWriter, input io.ReadCloser) {
	t.Helper()
	keyboard, slave, err := fakesshd.OpenPTY()
	require.NoError(t, err)
	terminal, ok := Open(slave, slave)
	require.True(t, ok)
	restore, err := terminal.MakeRaw()
	require.NoError(t, err)
	input = terminal.Input(isFree)
	t.Cleanup(func() {
		require.NoError(t, input.Close())
		_ = restore()
		_ = slave.Close()
		_ = keyboard.Close()
	})
	return keyboard, input
}
