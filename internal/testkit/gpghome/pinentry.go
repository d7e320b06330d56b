package gpghome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// pinentryScript is a pinentry in shell, which speaks pinentry's Assuan dialect
// (the pinentry manual, "Implementation Details"). It writes every line that
// it gets into a log beside itself, with its process ID. %s is replaced by what
// it does at GETPIN, CONFIRM and MESSAGE.
//
// It ends when the agent closes its stdin, so it does not outlive its agent; and
// since it tells its process ID, a newer agent can interrupt it.
const pinentryScript = `#!/bin/sh
echo 'OK Pleased to meet you'
while IFS= read -r line; do
	printf '%%s %%s\n' "$$" "$line" >>"$0.log"
	case $line in
	'GETINFO pid') echo "D $$"; echo OK ;;
	'GETINFO flavor') echo 'D scripted'; echo OK ;;
	'GETINFO version') echo 'D 1.0.0'; echo OK ;;
	'GETINFO ttyinfo') echo 'D - - -'; echo OK ;;
%s
	BYE*) echo 'OK closing connection'; exit 0 ;;
	*) echo OK ;;
	esac
done
`

// PinentryAnswers returns the script of a user who always types this passphrase, and confirms
// every question.
func PinentryAnswers(passphrase string) string {
	escaped := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(passphrase)
	quoted := "'" + strings.ReplaceAll("D "+escaped, "'", `'\''`) + "'"
	return fmt.Sprintf(pinentryScript, "\tGETPIN*) printf '%s\\n' "+quoted+"; echo OK ;;")
}

// PinentryNever returns the script of a user who does not react: the pinentry stays open until
// the agent ends it.
func PinentryNever() string {
	return fmt.Sprintf(pinentryScript, "\tGETPIN*|CONFIRM*|MESSAGE*) : ;;")
}

// PinentryCancels returns the script of a user who presses Cancel, with which a new home
// begins. 83886179 is GPG_ERR_CANCELED with pinentry as its source.
func PinentryCancels() string {
	return fmt.Sprintf(pinentryScript, "\tGETPIN*|CONFIRM*|MESSAGE*) echo 'ERR 83886179 Operation cancelled <Pinentry>' ;;")
}

func (h *Home) pinentryPath() string { return filepath.Join(h.dir, "pinentry") }

// SetPinentry replaces the program that the agent runs to ask the user, starting with the next
// question: the agent runs it anew for each. script is one of PinentryAnswers, PinentryNever and
// PinentryCancels, or any executable text; PinentryCalls works only if that writes the log.
func (h *Home) SetPinentry(script string) error {
	// A program started meanwhile by another goroutine would inherit the open file for a
	// moment, and the agent's exec would fail with ETXTBSY.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fresh := h.pinentryPath() + ".new"
	err := os.WriteFile(fresh, []byte(script), 0o700)
	if err == nil {
		err = os.Rename(fresh, h.pinentryPath())
	}
	if err != nil {
		return fmt.Errorf("gpghome: pinentry: %w", err)
	}
	return nil
}

// A PinentryCall is one line that the agent sent to a pinentry.
type PinentryCall struct {
	PID  int    // of the pinentry
	Line string // for example "GETPIN", or "SETDESC " and an escaped text
}

// Running reports whether the pinentry that got this call is still there.
func (c PinentryCall) Running() bool { return running(c.PID) }

// PinentryCalls returns what the agent sent to the home's pinentries so far.
func (h *Home) PinentryCalls() ([]PinentryCall, error) {
	text, err := os.ReadFile(h.pinentryPath() + ".log")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("gpghome: pinentry: %w", err)
	}
	var calls []PinentryCall
	for line := range strings.Lines(string(text)) {
		pid, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(pid)
		if err != nil {
			return nil, fmt.Errorf("gpghome: pinentry log: %w", err)
		}
		calls = append(calls, PinentryCall{PID: n, Line: rest})
	}
	return calls, nil
}

// WaitPinentry waits until a pinentry has got a line that begins with verb, and returns the
// first such line: WaitPinentry(ctx, "GETPIN") waits until the user is asked.
func (h *Home) WaitPinentry(ctx context.Context, verb string) (PinentryCall, error) {
	var found PinentryCall
	err := waitFor(ctx, func() bool {
		calls, _ := h.PinentryCalls()
		for _, call := range calls {
			if strings.HasPrefix(call.Line, verb) {
				found = call
				return true
			}
		}
		return false
	})
	if err != nil {
		return PinentryCall{}, fmt.Errorf("gpghome: no pinentry got %q: %w", verb, err)
	}
	return found, nil
}
