package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/testkit/fakesshd"
)

// patience bounds the wait for something that must come.
const patience = 30 * time.Second

// A screen is a pseudo-terminal with a program on it, whose output is kept.
type screen struct {
	t             *testing.T
	cmd           *exec.Cmd
	master, slave *os.File
	reading       sync.WaitGroup

	mu   sync.Mutex
	seen bytes.Buffer
	more chan struct{} // holds one signal: there is new output
}

// onScreen starts cmd as the leader of a session with a new terminal.
func onScreen(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	master, slave, err := fakesshd.OpenPTY()
	require.NoError(t, err)
	s := &screen{t: t, cmd: cmd, master: master, slave: slave, more: make(chan struct{}, 1)}
	require.NoError(t, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 91, Row: 33}))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	s.reading.Go(s.read)
	t.Cleanup(s.close)
	return s
}

func (s *screen) close() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
	_ = s.slave.Close()
	s.reading.Wait() // the slave's last end is closed
	_ = s.master.Close()
}

func (s *screen) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.seen.Write(buf[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

func (s *screen) keys(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.master, text)
	require.NoError(s.t, err)
}

// expect waits until text has been seen n times.
func (s *screen) expect(text string, n int) {
	s.t.Helper()
	deadline := time.After(patience)
	for strings.Count(s.text(), text) < n {
		select {
		case <-s.more:
		case <-deadline:
			require.FailNow(s.t, "not on the screen", "%q x %d in\n%q", text, n, s.text())
		}
	}
}

// wait returns the exit status and all that was on the screen.
func (s *screen) wait() (status int, text string) {
	s.t.Helper()
	err := waitFor(s.t, s.cmd)
	if err != nil {
		s.t.Logf("on the screen: %q", s.text())
	}
	status = exitStatus(s.t, err)
	_ = s.slave.Close()
	s.reading.Wait()
	return status, s.text()
}

// waitKeepingModes is wait, and requires that the terminal's modes are as before.
func (s *screen) waitKeepingModes(before unix.Termios) (status int, text string) {
	s.t.Helper()
	err := waitFor(s.t, s.cmd)
	require.Equal(s.t, before, s.modes(), "the terminal is as it was")
	_ = s.slave.Close()
	s.reading.Wait()
	return exitStatus(s.t, err), s.text()
}

// modes returns the terminal's modes.
func (s *screen) modes() unix.Termios {
	s.t.Helper()
	termios, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	require.NoError(s.t, err)
	return *termios
}

func (s *screen) isRaw() bool { return s.modes().Lflag&(unix.ICANON|unix.ISIG) == 0 }

func waitFor(t *testing.T, cmd *exec.Cmd) error {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait()
}

func exitStatus(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
		return 0
	}
	require.True(t, exit.Exited(), "%v", err)
	return exit.ExitCode()
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 10*time.Millisecond, what)
}

// resize changes the size of the terminal's window.
func resize(t *testing.T, s *screen, rows, cols uint16) {
	t.Helper()
	require.NoError(t, unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows}))
}
