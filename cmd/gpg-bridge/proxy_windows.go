package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/windows"
)

// untilParentEnds ends the context with the process that started us: ssh.exe
// may leave our input open when it is ended (Win32-OpenSSH), and there is no
// signal. The goroutine ends with the process.
func untilParentEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		parent, ok := openParent()
		if !ok {
			return
		}
		defer func() { _ = windows.CloseHandle(parent) }()
		if event, err := windows.WaitForSingleObject(parent, windows.INFINITE); err == nil && event == windows.WAIT_OBJECT_0 {
			cancel()
		}
	}()
	return ctx, cancel
}

// openParent is not ok where the parent has gone, or another process has its ID
// by now: one that began after us.
func openParent() (windows.Handle, bool) {
	const access = windows.SYNCHRONIZE | windows.PROCESS_QUERY_LIMITED_INFORMATION
	parent, err := windows.OpenProcess(access, false, uint32(os.Getppid()))
	if err != nil {
		return 0, false
	}
	theirs, theirErr := began(parent)
	ours, ourErr := began(windows.CurrentProcess())
	if theirErr != nil || ourErr != nil || theirs > ours {
		_ = windows.CloseHandle(parent)
		return 0, false
	}
	return parent, true
}

// began is when the process was made, in nanoseconds.
func began(process windows.Handle) (int64, error) {
	var creation, exit, kernel, user windows.Filetime
	err := windows.GetProcessTimes(process, &creation, &exit, &kernel, &user)
	return creation.Nanoseconds(), err
}

// parentName is for systems with ProxyUseFdpass.
func parentName() string { return "" }

// shellCommand starts the program that the command begins with, as
// Win32-OpenSSH does: without a shell, unless the command names one.
func shellCommand(command string) (*exec.Cmd, error) {
	words, _ := splitCommand(command)
	if len(words) == 0 {
		return nil, errNoDestination
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nil, fmt.Errorf("no program %q: %w", words[0], err)
	}
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: strings.TrimLeft(command, " \t")}
	return cmd, nil
}

// hangUp: there is no signal to ask with.
func hangUp(p *os.Process) { _ = p.Kill() }

// newAttend makes no command: there is no ProxyUseFdpass on Windows.
func newAttend(*ui) *cobra.Command { return nil }

// startAttendant is for systems with ProxyUseFdpass.
func (p *proxyRun) startAttendant(*net.TCPConn) {}

// terminalIsCooked reports whether the console is read line by line, and shows
// what is typed.
func terminalIsCooked(*os.File) bool {
	tty, err := openTerminal()
	if err != nil {
		return false
	}
	defer func() { _, _ = tty.in.Close(), tty.out.Close() }()
	var mode uint32
	const lines = windows.ENABLE_LINE_INPUT | windows.ENABLE_ECHO_INPUT
	return windows.GetConsoleMode(windows.Handle(tty.in.Fd()), &mode) == nil && mode&lines == lines
}
