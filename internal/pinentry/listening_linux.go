package pinentry

import (
	"bytes"
	"os"
	"strconv"
)

// acceptsConnections is in the flags of a socket that listens (__SO_ACCEPTCON, which
// proc(5) does not name; net/unix/af_unix.c).
const acceptsConnections = 1 << 16

// IsListening reports whether somebody listens at the path of a Unix socket, without
// connecting to it. It is false if that is not certain: the system only lists the sockets
// of this network namespace, with the paths that they were bound to.
func IsListening(path string) bool {
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(sockets) {
		rest, named := bytes.CutSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte(" "+path))
		fields := bytes.Fields(rest)
		if !named || len(fields) != 7 { // a path may have spaces, too
			continue
		}
		if flags, err := strconv.ParseUint(string(fields[3]), 16, 32); err == nil && flags&acceptsConnections != 0 {
			return true
		}
	}
	return false
}
