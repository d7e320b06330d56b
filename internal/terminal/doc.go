// Package terminal handles the user's own terminal, as a session on another machine needs
// it: its size and modes, raw mode, its input, and being stopped and continued.
package terminal
