//go:build unix

package agentside

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/usertext"
)

// fakeGpgconf writes a shell script and returns its path.
func fakeGpgconf(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(env.ShortDir(t), "gpgconf")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700))
	return path
}

// countingGpgconf is the real gpgconf, and the calls that were made of it.
func countingGpgconf(t *testing.T) (path string, calls func(prefix string) int) {
	t.Helper()
	log := filepath.Join(env.ShortDir(t), "log")
	path = fakeGpgconf(t, `echo "$*" >>`+log+"\nexec "+env.Tool(t, "gpgconf")+` "$@"`)
	return path, func(prefix string) int {
		text, err := os.ReadFile(log)
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, prefix) {
				n++
			}
		}
		return n
	}
}

// dialAndGreet goes all the way to the agent's greeting.
func dialAndGreet(t *testing.T, l *Locator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	at, err := l.Locate(ctx)
	require.NoError(t, err)
	conn, err := at.Dial(ctx)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	require.NoError(t, at.Authenticate(conn))
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "OK Pleased to meet you")
}

// requireHint returns the error as the type that was asked for, and has it say
// what to do.
func requireHint[E error](t *testing.T, err error) E {
	t.Helper()
	var want E
	require.ErrorAs(t, err, &want)
	hinted, ok := error(want).(usertext.Hinted)
	require.True(t, ok)
	require.NotEmpty(t, hinted.Hint())
	require.NotContains(t, hinted.Hint(), "\n")
	return want
}

func TestDialStartsTheAgentOnce(t *testing.T) {
	h := gpghome.ForTest(t)
	gpgconf, calls := countingGpgconf(t)
	l := &Locator{Gpgconf: gpgconf, Env: h.Env()}

	at, err := l.Locate(t.Context())
	require.NoError(t, err)
	want, err := h.ExtraSocket(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, at.Path())
	_, err = h.AgentPID(t.Context())
	require.ErrorIs(t, err, gpghome.ErrNoAgent, "locating starts nothing")

	var all sync.WaitGroup
	failed := make(chan error, 20)
	for range cap(failed) {
		all.Go(func() {
			conn, err := at.Dial(t.Context())
			if err == nil {
				err = conn.Close()
			}
			failed <- err
		})
	}
	all.Wait()
	for range cap(failed) {
		require.NoError(t, <-failed)
	}
	require.Equal(t, 1, calls("--launch"))
	dialAndGreet(t, l)
	require.Equal(t, 1, calls("--launch"), "it runs")
	_, err = h.AgentPID(t.Context())
	require.NoError(t, err) // Close of the home can end it
}

func TestDialStartsTheAgentAgainAfterACrash(t *testing.T) {
	h := gpghome.ForTest(t)
	require.NoError(t, h.StartAgent(t.Context()))
	l := &Locator{Env: h.Env()}
	dialAndGreet(t, l)
	require.NoError(t, h.KillAgent(t.Context()))
	path, err := h.ExtraSocket(t.Context())
	require.NoError(t, err)
	require.FileExists(t, path, "a stale socket is what this is about")
	dialAndGreet(t, l)
	_, err = h.AgentPID(t.Context())
	require.NoError(t, err)
}

func TestDisabledExtraSocketLeadsToTheMainOne(t *testing.T) {
	h := gpghome.ForTest(t)
	require.NoError(t, h.AppendConfig("gpg-agent.conf", "extra-socket none"))
	require.NoError(t, h.StartAgent(t.Context()))
	gpgconf, calls := countingGpgconf(t)
	l := &Locator{Gpgconf: gpgconf, Env: h.Env()}
	dialAndGreet(t, l)
	require.Zero(t, calls("--launch"), "an agent runs")
	require.Zero(t, calls("--list-dirs agent-socket"), "it is beside the extra one")

	session, err := (&Agent{Locator: l}).Connect(t.Context())
	require.NoError(t, err, "and the connection was turned into a restricted one")
	require.NoError(t, session.Close())
}

func TestAgentThatListensNowhere(t *testing.T) {
	dir := env.ShortDir(t)
	l := &Locator{Gpgconf: fakeGpgconf(t, "case $1 in --launch) exit 0;; esac; echo "+dir+"/$2")}
	at, err := l.Locate(t.Context())
	require.NoError(t, err)
	_, err = at.Dial(t.Context())
	require.ErrorIs(t, err, errDisabled)
	requireHint[usertext.Hinted](t, err)
}

func TestAgentThatCannotBeStarted(t *testing.T) {
	dir := env.ShortDir(t)
	l := &Locator{Gpgconf: fakeGpgconf(t, "case $1 in --launch) echo no such luck >&2; exit 2;; esac; echo "+dir+"/$2")}
	at, err := l.Locate(t.Context())
	require.NoError(t, err)
	_, err = at.Dial(t.Context())
	failed := requireHint[*GpgconfError](t, err)
	require.Equal(t, `gpgconf --launch gpg-agent: exit status 2: "no such luck"`, failed.Error())
	require.Contains(t, failed.Hint(), "gpgconf --launch gpg-agent")
}

func TestStartIsBoundedByTheContext(t *testing.T) {
	dir := env.ShortDir(t)
	l := &Locator{Gpgconf: fakeGpgconf(t, "case $1 in --launch) exec sleep 600;; esac; echo "+dir+"/$2")}
	at, err := l.Locate(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = at.Dial(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	silent := requireHint[*SilentError](t, err)
	require.Less(t, silent.After, time.Second, "what it had, and not what it may have")
}

func TestGivenSocketIsUsedAlone(t *testing.T) {
	gpgconf, calls := countingGpgconf(t)
	missing := filepath.Join(env.ShortDir(t), "S")
	l := &Locator{AgentSocket: missing, Gpgconf: gpgconf}
	at, err := l.Locate(t.Context())
	require.NoError(t, err)
	_, err = at.Dial(t.Context())
	gone := requireHint[*NoAgentError](t, err)
	require.Equal(t, missing, gone.Path)
	require.Contains(t, gone.Error(), "no gpg-agent at")

	listener, err := net.Listen("unix", missing)
	require.NoError(t, err)
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	_, err = at.Dial(t.Context())
	requireHint[*NoAgentError](t, err)
	require.Zero(t, calls(""), "gpgconf was not asked")
}

func TestGpgconfOutput(t *testing.T) {
	for output, want := range map[string]string{
		`/run/S\n`:          "/run/S",
		`/run/S\r\n`:        "/run/S",
		`/run/S`:            "/run/S",
		`/run/a b%%3ac:d\n`: "/run/a b%3ac:d",
	} {
		l := &Locator{Gpgconf: fakeGpgconf(t, "printf '"+output+"'")}
		at, err := l.Locate(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, at.Path())
	}
	for _, output := range []string{"", `\n`, `S.gpg-agent.extra\n`} {
		_, err := (&Locator{Gpgconf: fakeGpgconf(t, "printf '"+output+"'")}).Locate(t.Context())
		requireHint[*GpgconfError](t, err)
		require.ErrorContains(t, err, "not an absolute path")
	}
}

func TestGpgconfIsAskedEachTime(t *testing.T) {
	file := filepath.Join(env.ShortDir(t), "where")
	l := &Locator{Gpgconf: fakeGpgconf(t, "cat "+file)}
	for _, want := range []string{"/one", "/two"} {
		require.NoError(t, os.WriteFile(file, []byte(want+"\n"), 0o600))
		at, err := l.Locate(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, at.Path())
	}
}

func TestFindGpgconf(t *testing.T) {
	t.Setenv("PATH", env.ShortDir(t))
	var l Locator
	nowhere := func() []string { return nil }
	_, err := l.findGpgconf(nowhere)
	require.ErrorIs(t, err, ErrNoGpgconf)
	requireHint[usertext.Hinted](t, err)

	there := fakeGpgconf(t, "")
	got, err := l.findGpgconf(func() []string { return []string{"/nowhere", filepath.Dir(there)} })
	require.NoError(t, err)
	require.Equal(t, there, got)

	t.Setenv("PATH", filepath.Dir(there))
	got, err = l.findGpgconf(nowhere)
	require.NoError(t, err)
	require.Equal(t, there, got)

	l.Gpgconf = "/nowhere/gpgconf"
	_, err = l.Locate(t.Context())
	requireHint[*GpgconfError](t, err)
}

func TestWindowsPath(t *testing.T) {
	for path, want := range map[string]string{
		"/c/Users/me/S.gpg-agent.extra": `C:\Users\me\S.gpg-agent.extra`,
		"/D/x":                          `D:\x`,
		"/cygdrive/c/Users/me":          `C:\Users\me`,
		`C:\Users\me`:                   `C:\Users\me`,
		`C:/Users/me`:                   `C:/Users/me`,
		"/home/me":                      "/home/me",
		"/1/x":                          "/1/x",
		"/c":                            "/c",
		"":                              "",
		"/cygdrive":                     "/cygdrive",
	} {
		require.Equal(t, want, windowsPath(path), "%q", path)
	}
}
