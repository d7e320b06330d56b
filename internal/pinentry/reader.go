package pinentry

import (
	"fmt"
	"os"
)

// A Reader is a process that reads all that is typed at a terminal, and sends it away.
type Reader struct {
	PID      int
	Name     string
	Terminal uint64 // its device number (st_rdev in stat(2))
}

// TerminalPath is the path of the terminal, or "a terminal" if that is hidden.
func (r Reader) TerminalPath() string {
	if path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", r.PID)); err == nil && Device(path) == r.Terminal {
		return path
	}
	return "a terminal"
}

// ReaderAt returns the first one at a terminal, or nil.
func ReaderAt(terminal uint64, readers []Reader) *Reader {
	for i := range readers {
		if readers[i].Terminal == terminal {
			return &readers[i]
		}
	}
	return nil
}

// isReader reports whether a program is a Reader when it is in the terminal's foreground, as
// the user's ssh is. A gpg-bridge ssh stops reading for a pinentry, but only if the system
// tells of pinentries: see OfAgent.
func isReader(name string, tellsPinentries bool) bool {
	return name == "ssh" || name == "gpg-bridge" && !tellsPinentries
}
