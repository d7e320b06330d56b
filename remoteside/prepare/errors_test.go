package prepare

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// errPlayed is why a program that is played has ended.
var errPlayed = errors.New("test")

// What the user reads of each error: all that is known, once, and what to do.
func TestPrepareErrorsSayWhatIsKnown(t *testing.T) {
	known := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for want, err := range map[string]error{
		"the account on the host runs no shell commands":                                          &NoShellError{FirstLine: "unknown: sh -c", Err: errPlayed, Repeats: true},
		`the account on the host runs no shell commands; it says "bye"`:                           &NoShellError{FirstLine: "bye", Err: errPlayed},
		"the account on the host runs no shell commands: test":                                    &NoShellError{Err: fmt.Errorf("run sh: %w", errPlayed)},
		"the account on the host runs no shell commands: your certificate forces another command": &NoShellError{Forced: true, FirstLine: "bye", Known: known},
		"the account on the host runs no shell commands, as it turned out on 2026-05-04":          &NoShellError{FirstLine: "bye", Known: known},
		"the path of the agent's socket on the host: why":                                         &SocketPathError{Reason: "why"},
		`the path of the agent's socket on the host, "/s": why`:                                   &SocketPathError{Path: "/s", Reason: "why"},
		"gpg --import on the host hangs":                                                          &HungError{Program: "gpg --import"},
		`gpg --import on the host hangs; process 3 of "n" holds "/l"`:                             &HungError{Program: "gpg --import", Lock: &Lock{Path: "/l", Node: "n", PID: 3}},
	} {
		require.EqualError(t, err, want)
	}
	for part, err := range map[string]interface{ Hint() string }{
		"asks again":                       &NoShellError{Known: known},
		"without running anything there":   &NoShellError{},
		"do this":                          &SocketPathError{Advice: "do this"},
		"gpgconf --list-dirs agent-socket": &SocketPathError{},
		"waits for":                        &HungError{},
		"remove the lock":                  &HungError{Lock: &Lock{}},
	} {
		require.Contains(t, err.Hint(), part)
	}
	require.NotContains(t, (&NoShellError{}).Hint(), "asks again")
}

// A cause that has its own advice keeps it.
func TestReportErrorKeepsAdvice(t *testing.T) {
	hinted := &HungError{Program: "gpg"}
	err := reportError(hinted)
	require.ErrorIs(t, err, hinted)
	_, isReport := errors.AsType[*ReportError](err)
	require.False(t, isReport)
	own, isReport := errors.AsType[*ReportError](reportError(errPlayed))
	require.True(t, isReport)
	require.NotEmpty(t, own.Hint())
	for _, detail := range []string{"path", "unnamed", "nodir", "readonly", "directory", "file", "redirect", "unremovable"} {
		at, ok := errors.AsType[*SocketPathError](verdictError(detail, "/s"))
		require.True(t, ok, detail)
		require.NotEmpty(t, at.Reason)
		require.NotEmpty(t, at.Advice)
	}
}
