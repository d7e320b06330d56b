package main

import (
	"os"

	"golang.org/x/term"

	"gpg-bridge/internal/ui"
)

// clearScreen moves to the top of a terminal and clears it (ECMA-48: CUP, ED).
const clearScreen = "\x1b[H\x1b[2J"

// A display shows a text that changes: it redraws in place on a terminal, and appends
// elsewhere.
type display struct {
	ui       *ui.UI
	terminal bool
	shown    string
}

func newDisplay(user *ui.UI) *display {
	file, ok := user.Stdout.(*os.File)
	return &display{ui: user, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// show shows the text. Without news, when only ages have changed, it does so only on a
// terminal.
func (d *display) show(text string, news bool) error {
	if text == d.shown || !news && !d.terminal && d.shown != "" {
		return nil
	}
	switch {
	case d.terminal:
		d.ui.Control(clearScreen)
	case d.shown != "":
		text = "\n" + text
	}
	d.shown = text
	return d.ui.Print(text)
}
