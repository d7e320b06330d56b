package private

import (
	"fmt"
	"os"
)

// directory is the last element of the runtime directory's path.
const directory = "gpg-bridge"

// Runtime opens the directory for what lives no longer than a log-in: sockets
// and the files beside them. It is made where it is missing. Its place is
//
//   - gpg-bridge in $XDG_RUNTIME_DIR, if that is set and safe (XDG Base
//     Directory Specification); after su(1) it may be another user's;
//   - else gpg-bridge-UID in os.TempDir;
//   - on Windows gpg-bridge in %LocalAppData%.
//
// Processes of one user with one environment come to the same place. The error
// is an *InsecureError where another user has taken it.
func Runtime() (*Dir, error) {
	path, err := runtimePath(os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	return Open(path)
}
