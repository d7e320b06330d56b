package sshsession

import (
	"regexp"
	"strings"
)

// sgr matches the colours of a message of the day; they are removed, and other control
// characters are escaped.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// showsMOTD reports whether sshd would show the message of the day if the session were the
// first on its connection: it does to a login shell with a terminal.
func (r *run) showsMOTD() bool {
	if r.onlyForward() || r.isSubsystem() || r.remoteCommand() != "" {
		return false
	}
	_, pty, _ := r.terminal()
	return pty != nil
}

// showMOTD shows the message of the day where sshd does, before the shell's output, but not if
// the session has begun already.
func (b *sessionBridge) showMOTD(lines []string) {
	if b.isLate() || b.isSettled() {
		return
	}
	_ = b.run.service.UI.Print(sgr.ReplaceAllString(strings.Join(lines, "\n"), "") + "\n")
}
