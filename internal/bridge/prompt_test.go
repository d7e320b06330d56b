//go:build unix

package bridge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/pinentry"
)

var sshAtNull = pinentry.Reader{PID: 7, Name: "ssh", Terminal: pinentry.Device("/dev/null")} // a device that is always there

// Many concurrent clients cause one look, and its result is used for a limited time.
func TestMisplacedPromptIsLookedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m promptCache
		var asked, looked atomic.Int32
		terminal, program := "/dev/null", "/usr/bin/pinentry-tty"
		ask := func() (Prompt, error) {
			time.Sleep(time.Millisecond)
			asked.Add(1)
			return Prompt{Program: program, Terminal: terminal}, nil
		}
		readers := []pinentry.Reader{{PID: 6, Name: "ssh", Terminal: 1}, sshAtNull}
		readersOf := func() ([]pinentry.Reader, error) {
			looked.Add(1)
			return readers, nil
		}
		requireRefused := func(want *PromptError) {
			t.Helper()
			found, err := m.get(t.Context(), ask, readersOf)
			require.NoError(t, err)
			require.Equal(t, want, found)
		}
		var clients sync.WaitGroup
		for range 1000 {
			clients.Go(func() { requireRefused(&PromptError{Terminal: "/dev/null", Reader: sshAtNull}) })
		}
		clients.Wait()
		require.Equal(t, []int32{1, 1}, []int32{asked.Load(), looked.Load()})

		readers = readers[:1]
		time.Sleep(readerAge)
		requireNone(t)(m.get(t.Context(), ask, readersOf))
		require.Equal(t, []int32{1, 2}, []int32{asked.Load(), looked.Load()})

		program, readers = "/usr/bin/my-pinentry", []pinentry.Reader{sshAtNull}
		time.Sleep(promptAge)
		requireRefused(&PromptError{Terminal: "/dev/null", Reader: sshAtNull, Doubtful: "my-pinentry"})
		program = "/usr/bin/pinentry-mac"
		time.Sleep(promptAge)
		requireNone(t)(m.get(t.Context(), ask, readersOf))
		require.Equal(t, []int32{3, 4}, []int32{asked.Load(), looked.Load()})

		terminal, program = "", "/usr/bin/pinentry-tty"
		time.Sleep(promptAge)
		requireNone(t)(m.get(t.Context(), ask, readersOf))
		require.Equal(t, []int32{4, 5}, []int32{asked.Load(), looked.Load()})

		readers = nil
		time.Sleep(promptAge)
		requireNone(t)(m.get(t.Context(), ask, readersOf))
		require.Equal(t, []int32{4, 6}, []int32{asked.Load(), looked.Load()}, "nothing can be misplaced, and the agent is not asked")
	})
}

func requireNone(t *testing.T) func(*PromptError, error) {
	return func(found *PromptError, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Nil(t, found)
	}
}

// A failure to find out is not taken for "no", and not remembered.
func TestMisplacedPromptIsNotRuledOutByAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m promptCache
		failed := errors.New("no answer")
		terminal := func() (Prompt, error) { return Prompt{Program: "pinentry-tty", Terminal: "/dev/null"}, nil }
		silent := func() (Prompt, error) { return Prompt{}, failed }
		nobody := func() ([]pinentry.Reader, error) { return nil, nil }
		elsewhere := func() ([]pinentry.Reader, error) { return []pinentry.Reader{{PID: 6, Name: "ssh", Terminal: 1}}, nil }
		ssh := func() ([]pinentry.Reader, error) { return []pinentry.Reader{sshAtNull}, nil }

		_, err := m.get(t.Context(), silent, elsewhere)
		require.Equal(t, failed, err)
		requireNone(t)(m.get(t.Context(), silent, nobody))

		time.Sleep(readerAge)
		_, err = m.get(t.Context(), terminal, func() ([]pinentry.Reader, error) { return nil, failed })
		require.Equal(t, failed, err)
		requireNone(t)(m.get(t.Context(), terminal, elsewhere))

		time.Sleep(readerAge)
		found, err := m.get(t.Context(), silent, ssh)
		require.NoError(t, err, "where it would ask is still known")
		require.Equal(t, 7, found.Reader.PID)

		time.Sleep(promptAge)
		_, err = m.get(t.Context(), silent, ssh)
		require.Equal(t, failed, err)
		requireNone(t)(m.get(t.Context(), terminal, func() ([]pinentry.Reader, error) { return nil, pinentry.ErrUnknown }))
	})
}

// A slow agent's last answer is used, as long as it is the same process.
func TestMisplacedPromptOfASlowAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m promptCache
		failed, lives := errors.New("no answer"), true
		device := "/dev/null"
		word := func() (Prompt, error) {
			return Prompt{Program: "pinentry-tty", Terminal: device, lives: func() bool { return lives }}, nil
		}
		silent := func() (Prompt, error) { return Prompt{}, failed }
		ssh := func() ([]pinentry.Reader, error) { return []pinentry.Reader{sshAtNull}, nil }

		device = ""
		requireNone(t)(m.get(t.Context(), word, ssh))
		for range 3 {
			time.Sleep(promptAge)
			requireNone(t)(m.get(t.Context(), silent, ssh))
		}
		time.Sleep(promptAge)
		device = "/dev/null"
		found, err := m.get(t.Context(), word, ssh)
		require.NoError(t, err)
		require.Equal(t, 7, found.Reader.PID)
		time.Sleep(promptAge)
		found, err = m.get(t.Context(), silent, ssh)
		require.NoError(t, err)
		require.Equal(t, 7, found.Reader.PID)

		time.Sleep(promptAge)
		_, err = m.get(t.Context(), func() (Prompt, error) { return Prompt{}, &agentside.NoAgentError{} }, ssh)
		require.Error(t, err)
		lives = false
		_, err = m.get(t.Context(), silent, ssh)
		require.Equal(t, failed, err)
	})
}

// A caller does not wait longer than its context for another's look.
func TestMisplacedPromptIsNotWaitedForBeyondTheContext(t *testing.T) {
	var m promptCache
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := m.get(t.Context(), func() (Prompt, error) {
		enough := errors.New("enough")
		cancel(enough)
		_, err := m.get(ctx, nil, nil)
		require.Equal(t, enough, err)
		return Prompt{}, nil
	}, func() ([]pinentry.Reader, error) { return []pinentry.Reader{sshAtNull}, nil })
	require.NoError(t, err)
}

// Only the lines after which an agent may ask cost anything.
func TestMayPrompt(t *testing.T) {
	for line, want := range map[string]string{
		"PKSIGN\n": "NOP\n", "pksign --hash=sha256\n": "NOP\n", " PkDecrypt\r\n": "",
		"PkDecrypt\r\n": "NOP\n", "END\n": "CAN\n", "end x\n": "CAN\n",
		"CAN\n": "", "D END\n": "", "PKSIGNATURE\n": "", "SIGKEY x\n": "", "ENDE\n": "", "\n": "", "": "",
	} {
		require.Equal(t, want, mayPrompt([]byte(line)), "%q", line)
	}
	line := []byte("SETHASH 8 00\n")
	require.Zero(t, testing.AllocsPerRun(10, func() { mayPrompt(line) }))
}
