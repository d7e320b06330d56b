package pinentry

import (
	"path/filepath"
	"slices"
	"strings"
)

// AsksOnTerminal reports whether a pinentry, given by its path without symbolic links, is
// one for text. Others may fall back to text: see MayAskOnTerminal.
func AsksOnTerminal(program string) bool {
	name := filepath.Base(program)
	return name == "pinentry-curses" || name == "pinentry-tty"
}

// MayAskOnTerminal reports whether a pinentry may ask on a terminal, given its path without
// symbolic links and the environment that the agent gives it. It is false only for a
// program that is known to open a window: one of an unknown name may be a script that
// starts any other, and most that open windows turn into pinentry-curses if they cannot
// (pinentry's FALLBACK_CURSES). Even then a program may ask on a terminal after all, if the
// screen is locked or the display refuses it. Where the system shows that (EndsPrompts), a
// program of an unknown name is given the benefit of the doubt, as the scripts that some
// systems install as "pinentry": with a display that answers they open windows.
func MayAskOnTerminal(program string, env map[string]string) bool {
	return mayAskOnTerminal(program, env, EndsPrompts())
}

func mayAskOnTerminal(program string, env map[string]string, endsPrompts bool) bool {
	name := filepath.Base(program)
	switch {
	case AsksOnTerminal(program):
		return true
	case name == "pinentry-mac", name == "pinentry-touchid": // GPGTools' macosx/main.m; the other starts it
		return strings.Contains(env["PINENTRY_USER_DATA"], "USE_CURSES=1")
	case strings.HasSuffix(name, ".exe"), name == "pinentry-wsl-ps1.sh": // of Windows, also when started from WSL
		return false
	case name == "pinentry-gnome3":
		return !(hasBus(env) && (hasWayland(env) || hasX11(env)))
	case slices.Contains([]string{"pinentry-gtk", "pinentry-gtk-2", "pinentry-tqt", "pinentry-x11"}, name):
		return !hasX11(env)
	case endsPrompts, slices.Contains([]string{
		"pinentry-qt", "pinentry-qt4", "pinentry-qt5", "pinentry-qt6", "pinentry-fltk", "pinentry-efl",
	}, name):
		return !(hasWayland(env) || hasX11(env))
	}
	return true
}

// ReadsLines reports whether a pinentry, given by its path without symbolic links, waits for
// an LF at the end of a line, and relies on the terminal to make one of the Enter key.
func ReadsLines(program string) bool { return filepath.Base(program) == "pinentry-tty" }
