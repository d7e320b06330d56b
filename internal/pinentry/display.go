package pinentry

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// displayTimeout is how long a display has to accept a connection. Most are on this machine
// and do so at once.
const displayTimeout = 300 * time.Millisecond

// hasX11 reports whether the X server of DISPLAY accepts a connection (X(7), "display
// names"). A DISPLAY often outlives its server, in a tmux for example. A path, as XQuartz
// uses it, does not count: a connection would start that server. It would also start an
// Xwayland that its compositor starts on demand, so none is made if somebody is known to
// listen.
func hasX11(env map[string]string) bool {
	display := env["DISPLAY"]
	colon := strings.LastIndexByte(display, ':')
	if colon < 0 {
		return false
	}
	host := display[:colon]
	digits, _, _ := strings.Cut(display[colon+1:], ".")
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || number > 0xffff-6000 || strings.Contains(host, "/") {
		return false
	}
	if host != "" && host != "unix" {
		return answers("tcp", net.JoinHostPort(strings.Trim(host, "[]"), strconv.FormatUint(6000+number, 10)))
	}
	socket := "/tmp/.X11-unix/X" + strconv.FormatUint(number, 10)
	return isServed(socket) || isServed("@"+socket)
}

// hasWayland is the same for WAYLAND_DISPLAY, which is a path or a name in XDG_RUNTIME_DIR
// (wl_display_connect). The agent does not tell its XDG_RUNTIME_DIR; ours is the same
// user's.
func hasWayland(env map[string]string) bool {
	socket := env["WAYLAND_DISPLAY"]
	if socket != "" && !filepath.IsAbs(socket) {
		socket = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), socket)
	}
	return filepath.IsAbs(socket) && answers("unix", socket)
}

// hasBus reports whether the session bus answers at the first of its addresses (D-Bus
// specification, "server addresses").
func hasBus(env map[string]string) bool {
	address, _, _ := strings.Cut(env["DBUS_SESSION_BUS_ADDRESS"], ";")
	pairs, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return false
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		key, escaped, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(escaped)
		switch {
		case err != nil:
		case key == "path":
			return answers("unix", value)
		case key == "abstract":
			return answers("unix", "@"+value)
		}
	}
	return false
}

// isServed is answers for a Unix socket, without a connection if the system tells that
// somebody listens. It may tell so for a path that was removed, so the socket must exist,
// unless it is abstract (unix(7)).
func isServed(socket string) bool {
	if _, err := os.Stat(socket); err != nil && socket[0] != '@' {
		return false
	}
	return IsListening(socket) || answers("unix", socket)
}

// answers reports whether somebody accepts a connection.
func answers(network, address string) bool {
	conn, err := net.DialTimeout(network, address, displayTimeout)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
