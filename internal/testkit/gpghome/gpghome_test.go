package gpghome

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGeneratedKeySignsAndDecrypts(t *testing.T) {
	for _, algo := range []string{Ed25519, RSA3072} {
		t.Run(algo, func(t *testing.T) {
			ctx := t.Context()
			h := ForTest(t)
			key, err := h.GenerateKey(ctx, KeySpec{UserID: "Alice <alice@example.org>", Algo: algo})
			require.NoError(t, err)
			require.Equal(t, "Alice <alice@example.org>", key.UserID)
			for _, hex := range []string{key.Fingerprint, key.Keygrip, key.Subkey, key.SubKeygrip} {
				require.Regexp(t, "^[0-9A-F]{40}$", hex)
			}
			require.FileExists(t, h.Dir()+"/private-keys-v1.d/"+key.Keygrip+".key")
			require.FileExists(t, h.Dir()+"/private-keys-v1.d/"+key.SubKeygrip+".key")

			sealed, _, err := h.Gpg(ctx, strings.NewReader("hello"), "-r", key.Fingerprint, "-es")
			require.NoError(t, err)
			opened, stderr, err := h.Gpg(ctx, strings.NewReader(string(sealed)), "-d")
			require.NoError(t, err)
			require.Equal(t, "hello", string(opened))
			require.Contains(t, string(stderr), "Good signature")
		})
	}
}

func TestPublicKeysOnly(t *testing.T) {
	ctx := t.Context()
	local, remote := ForTest(t), ForTest(t)
	key, err := local.GenerateKey(ctx, KeySpec{UserID: "Alice <alice@example.org>"})
	require.NoError(t, err)
	require.NoError(t, remote.ImportPublic(ctx, local, key.Fingerprint))
	require.NoError(t, remote.Trust(ctx, key.Fingerprint))

	_, err = remote.AgentPID(ctx)
	require.ErrorIs(t, err, ErrNoAgent, "an import must not start an agent")
	_, _, err = remote.Gpg(ctx, strings.NewReader("hello"), "-r", key.Fingerprint, "-e")
	require.NoError(t, err)
	_, err = remote.Key(ctx, key.Fingerprint)
	require.Error(t, err, "the secret key must not have come along")
}

func TestPinentryAnswers(t *testing.T) {
	ctx := t.Context()
	h := ForTest(t)
	const passphrase = `it's 100% "sure"`
	_, err := h.GenerateKey(ctx, KeySpec{UserID: "Alice <alice@example.org>", Passphrase: passphrase})
	require.NoError(t, err)

	_, _, err = h.Gpg(ctx, strings.NewReader("hello"), "-b")
	require.ErrorContains(t, err, "Operation cancelled", "a new home's human cancels")

	require.NoError(t, h.SetPinentry(PinentryAnswers("wrong")))
	_, _, err = h.Gpg(ctx, strings.NewReader("hello"), "-b")
	require.ErrorContains(t, err, "Bad passphrase")

	require.NoError(t, h.SetPinentry(PinentryAnswers(passphrase)))
	_, _, err = h.Gpg(ctx, strings.NewReader("hello"), "-b")
	require.NoError(t, err)

	calls, err := h.PinentryCalls()
	require.NoError(t, err)
	asked := 0
	for _, call := range calls {
		if call.Line == "GETPIN" {
			asked++
		}
	}
	require.Equal(t, 1+3+1, asked)
}

func TestPinentryNeverEndsWithItsAgent(t *testing.T) {
	ctx := t.Context()
	h := ForTest(t)
	_, err := h.GenerateKey(ctx, KeySpec{UserID: "Alice <alice@example.org>", Passphrase: "secret"})
	require.NoError(t, err)
	require.NoError(t, h.SetPinentry(PinentryNever()))

	signing, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, _, err := h.Gpg(signing, strings.NewReader("hello"), "-b")
		done <- err
	}()
	waiting, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	call, err := h.WaitPinentry(waiting, "GETPIN")
	require.NoError(t, err)
	require.True(t, call.Running())
	select {
	case err := <-done:
		t.Fatalf("gpg did not wait for the human: %v", err)
	default:
	}

	require.NoError(t, h.StopAgent(ctx))
	require.Error(t, <-done)
	require.NoError(t, waitGone(waiting, call.PID))
}

func TestAgentLifeCycle(t *testing.T) {
	ctx := t.Context()
	h := ForTest(t)
	_, err := h.AgentPID(ctx)
	require.ErrorIs(t, err, ErrNoAgent)
	require.NoError(t, h.StopAgent(ctx), "stopping none is no error")
	_, err = h.AgentCPU()
	require.ErrorIs(t, err, ErrNoAgent)

	require.NoError(t, h.StartAgent(ctx))
	first, err := h.AgentPID(ctx)
	require.NoError(t, err)
	extra, err := h.ExtraSocket(ctx)
	require.NoError(t, err)
	require.FileExists(t, extra)
	main, err := h.AgentSocket(ctx)
	require.NoError(t, err)
	require.NotEqual(t, main, extra)

	require.NoError(t, h.RestartAgent(ctx))
	require.False(t, running(first))
	second, err := h.AgentPID(ctx)
	require.NoError(t, err)
	require.NotEqual(t, first, second)

	require.NoError(t, h.StopAgent(ctx))
	require.False(t, running(second))
}

// An agent that got SIGTERM would wait for this connection to end.
func TestStopAgentWithOpenConnection(t *testing.T) {
	ctx := t.Context()
	h := ForTest(t)
	require.NoError(t, h.StartAgent(ctx))
	path, err := h.ExtraSocket(ctx)
	require.NoError(t, err)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)

	pid, err := h.AgentPID(ctx)
	require.NoError(t, err)
	require.NoError(t, h.StopAgent(ctx))
	require.False(t, running(pid))
}

func TestAgentCPUSeesWork(t *testing.T) {
	if _, err := readStat(os.Getpid()); errors.Is(err, os.ErrNotExist) {
		t.Skip("no /proc on this machine")
	}
	ctx := t.Context()
	h := ForTest(t)
	require.NoError(t, h.StartAgent(ctx))
	before, err := h.AgentCPU()
	require.NoError(t, err)
	// The calibration takes a good part of a second.
	_, _, err = h.Run(ctx, nil, "gpg-connect-agent", "GETINFO s2k_count_cal", "/bye")
	require.NoError(t, err)
	after, err := h.AgentCPU()
	require.NoError(t, err)
	require.Greater(t, after, before+50*time.Millisecond)
}

func TestCloseLeavesNothing(t *testing.T) {
	ctx := t.Context()
	h := ForTest(t)
	require.NoError(t, h.StartAgent(ctx))
	pid, err := h.AgentPID(ctx)
	require.NoError(t, err)
	extra, err := h.ExtraSocket(ctx)
	require.NoError(t, err)

	info, err := os.Stat(h.Dir())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, h.Close())
	require.False(t, running(pid))
	require.NoDirExists(t, h.Dir())
	require.NoFileExists(t, extra)
	require.NoError(t, h.Close(), "again")
}

func TestEnvLeadsNowhereElse(t *testing.T) {
	t.Setenv("GNUPGHOME", "/nowhere")
	t.Setenv("GPG_TTY", "/dev/tty")
	t.Setenv("GPG_BRIDGE_TEST", "kept")
	env := ForTest(t).Env()
	require.NotContains(t, env, "GNUPGHOME=/nowhere")
	require.NotContains(t, env, "GPG_TTY=/dev/tty")
	require.Contains(t, env, "GPG_BRIDGE_TEST=kept")
}

func TestParseStat(t *testing.T) {
	stat, err := parseStat("12 (a) (b c) S 1 12 12 0 -1 4194560 900 0 0 0 7 5 0 0 20 0 3 0 1")
	require.NoError(t, err)
	require.Equal(t, procStat{state: "S", cpu: 120 * time.Millisecond, threads: 3}, stat)
	require.False(t, stat.dead())
	require.False(t, procStat{state: "Z", threads: 2}.dead(), "a thread may still hold the sockets")
	require.True(t, procStat{state: "Z", threads: 1}.dead())
	for _, bad := range []string{"", ")", "12 (a) S 1", "x (a) S 1 12 12 0 -1 4194560 900 0 0 0 7 5 0 0 20 0 1", "12 (a) S 1 12 12 0 -1 4194560 900 0 0 0 x 5 0 0 20 0 1", "12 (a) S 1 12 12 0 -1 4194560 900 0 0 0 7 5 0 0 20 0"} {
		_, err := parseStat(bad)
		require.Error(t, err, "%q", bad)
	}
}
