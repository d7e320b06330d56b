package private

import (
	"fmt"
	"strings"
)

// An InsecureError says that something of ours is, or could be, in the hands of
// another user, and was not used.
type InsecureError struct {
	Path   string
	Reason string // "it belongs to user 1000"
	Advice string
}

func (e *InsecureError) Error() string {
	return fmt.Sprintf("%q is not safe to use: %s", e.Path, e.Reason)
}

// Hint says what to do.
func (e *InsecureError) Hint() string { return e.Advice }

// A SocketPathError says that a socket's path is longer than the system takes.
type SocketPathError struct {
	Path string
	Max  int // bytes
}

func (e *SocketPathError) Error() string {
	return fmt.Sprintf("the path of the socket %q has %d bytes, and the system takes %d", e.Path, len(e.Path), e.Max)
}

// Hint says what to do.
func (e *SocketPathError) Hint() string {
	return "set XDG_RUNTIME_DIR or TMPDIR to a directory with a shorter name"
}

// quoteForShell quotes for a POSIX shell: advice is made to be pasted.
func quoteForShell(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
