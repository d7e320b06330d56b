package private

import "fmt"

// An InsecureError says that a file or directory was not used, because another user
// controls it, or could.
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

// A SocketPathError says that a socket's path is longer than the system allows.
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
