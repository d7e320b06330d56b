package agentside

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Each bound is tried at its value and one beyond.

func TestResponseOfExactlyTheLimit(t *testing.T) {
	line := "D " + strings.Repeat("x", 997) + "\n"
	most := strings.Repeat(line, maxResponse/1000)
	rest := func(n int) string { return "D " + strings.Repeat("x", n-3) + "\n" }
	s := readySession(t, turn{"ONE\n", most + rest(maxResponse%1000) + "OK\n"}, turn{"TWO\n", most + rest(maxResponse%1000+1)}, hangUp)
	got, err := s.SendCommands([]byte("ONE\n"))
	require.NoError(t, err)
	require.Len(t, got, maxResponse+len("OK\n"))
	_, err = s.SendCommands([]byte("TWO\n"))
	require.ErrorIs(t, err, errResponseTooLong)
}

func TestPauseIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 100 * time.Millisecond
		shortest, longest := time.Hour, time.Duration(0)
		for range 500 {
			start := time.Now()
			require.NoError(t, pause(t.Context(), d))
			took := time.Since(start)
			shortest, longest = min(shortest, took), max(longest, took)
		}
		require.GreaterOrEqual(t, shortest, d/2)
		require.Less(t, longest, d/2+d)
		require.Greater(t, longest-shortest, d/2, "those who failed together come back together")
	})
}

func TestRootCause(t *testing.T) {
	const cause = syscall.ECONNREFUSED
	call := os.NewSyscallError("connect", cause)
	for _, err := range []error{
		cause, call, &net.OpError{Op: "dial", Err: cause}, &net.OpError{Op: "dial", Err: call},
		&fs.PathError{Op: "open", Path: "/x", Err: cause},
	} {
		require.Equal(t, error(cause), rootCause(err), "%v", err)
	}
	bare := &net.OpError{Op: "dial"}
	require.Equal(t, error(bare), rootCause(bare), "an error is never lost")
	require.EqualError(t, rootCause(errors.New("other")), "other")
}

func TestParseOwnerTrustBounds(t *testing.T) {
	const key = "0123456789ABCDEF0123456789ABCDEF01234567"
	for value := range 9 {
		want := map[string]int{}
		if value >= 2 && value <= 6 { // trust.h: TRUST_UNDEFINED to TRUST_ULTIMATE
			want[key] = value
		}
		require.Equal(t, want, parseOwnerTrust(fmt.Sprintf("%s:%d:\n", key, value)))
		require.Equal(t, want, parseOwnerTrust(fmt.Sprintf("%s:%d\n", key, value)))
	}
	require.Empty(t, parseOwnerTrust(key+"\n"))
}

func TestRecordsOfTenFieldsAreEnough(t *testing.T) {
	const key = "0123456789ABCDEF0123456789ABCDEF01234567"
	require.Equal(t, []string{key}, parseKeygrips("grp:::::::::"+key))
	require.Equal(t, []Key{{Fingerprint: key}}, readKeys("pub:\nfpr:::::::::"+key, 7))
	require.Empty(t, parseKeygrips("grp::::::::"+key))
	require.Empty(t, readKeys("pub:\nfpr::::::::"+key, 7))
}

func TestBoundedBufferKeepsItsLimit(t *testing.T) {
	b := boundedBuffer{limit: 3}
	_, _ = b.Write([]byte("ab"))
	_, _ = b.Write([]byte("c"))
	require.False(t, b.cut)
	n, err := b.Write([]byte("d"))
	require.NoError(t, err)
	require.Equal(t, 1, n, "gpg is not to see a short write")
	require.True(t, b.cut)
	require.Equal(t, "abc", b.kept.String())
}

func TestWindowsPathOfEveryDrive(t *testing.T) {
	for c := range 128 {
		letter := string(rune(c))
		want := "/" + letter + "/"
		if strings.ContainsAny(letter, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			want = strings.ToUpper(letter) + `:\`
		}
		require.Equal(t, want, windowsPath("/"+letter+"/"))
	}
}

// TestSilentProgramHadThatLong: rounded to a tenth of a second, and no longer than
// it was to have.
func TestSilentProgramHadThatLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		time.Sleep(4260 * time.Millisecond)
		require.Equal(t, 4300*time.Millisecond, newSilentError("gpg", nil, start, 10*time.Second).After)
		require.Equal(t, 4250*time.Millisecond, newSilentError("gpg", nil, start, 4250*time.Millisecond).After)
	})
}
