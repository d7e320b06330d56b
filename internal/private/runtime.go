package private

import (
	"fmt"
	"os"
)

// directory is what the runtime directory is called, or how its name begins.
const directory = "gpg-bridge"

// Runtime opens the directory for what lives no longer than a log-in: sockets
// and the files beside them. It is created if it is missing. It is
//
//   - gpg-bridge in $XDG_RUNTIME_DIR, if that is set and the user's own (XDG Base
//     Directory Specification; after su(1) it may be another user's);
//   - else gpg-bridge-UID in os.TempDir;
//   - on Windows gpg-bridge in %LocalAppData%.
//
// A user's processes with the same environment use the same one. The error is an
// *InsecureError if another user has taken it.
func Runtime() (*Dir, error) {
	path, err := runtimePath(os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	return Open(path)
}
