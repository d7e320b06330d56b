package terminal

// A WindowSize is the size of a terminal, in characters and in pixels; 0 pixels means
// unknown.
type WindowSize struct {
	Cols, Rows, XPixels, YPixels uint32
}

// A PTY is the terminal that a session asks for (RFC 4254 section 6.2).
type PTY struct {
	Term string // as in the environment variable TERM
	WindowSize
	Modes []byte // encoded as in section 8; see Terminal.Modes
}
