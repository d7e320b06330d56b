package prepare

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// removeBody removes a socket, and nothing else.
const removeBody = `if [ -S "$sock" ]; then rm -f "$sock" </dev/null; fi`

// RemoveSocket removes the socket that sshd leaves behind at path, with one command.
// If something else is there, it is not removed, and that is no error.
func RemoveSocket(ctx context.Context, host Host, path string) error {
	if err := checkSocketPath(path); err != nil {
		return fmt.Errorf("remove the socket %.200q on the host: %w", path, err)
	}
	script := strings.NewReader(compound(removeBody, "sock="+quote(path)))
	if err := host.Run(ctx, shellCommand, script, io.Discard, io.Discard); err != nil {
		return fmt.Errorf("remove the socket %q on the host: %w", path, err)
	}
	return nil
}
