//go:build unix

package sshd

import (
	"errors"
	"syscall"
)

// Stop stops the account's processes (SIGSTOP), but for those that end meanwhile.
// The account's removal kills them.
func (a *Account) Stop() {
	a.t.Helper()
	for _, pid := range a.Processes() {
		if err := syscall.Kill(pid, syscall.SIGSTOP); !errors.Is(err, syscall.ESRCH) {
			must(a.t, err)
		}
	}
}
