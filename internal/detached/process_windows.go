package detached

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// waysApart are the ways to start a process apart from this one, the best first: without
// our console, and outside our job, which would end it together with ssh.exe
// (CreateProcess, Process Creation Flags). A job may forbid processes to leave it.
func waysApart() []*syscall.SysProcAttr {
	const flags = windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW
	return []*syscall.SysProcAttr{
		{HideWindow: true, CreationFlags: flags | windows.CREATE_BREAKAWAY_FROM_JOB},
		{HideWindow: true, CreationFlags: flags},
	}
}

// isForbidden reports whether a start failed because of the way it was made.
func isForbidden(err error) bool { return errors.Is(err, windows.ERROR_ACCESS_DENIED) }
