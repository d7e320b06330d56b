package pinentry

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMayAskOnTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer listener.Close()
	bus := "unix:path=" + socket + ",guid=00;tcp:host=none"
	nowhere := filepath.Join(dir, "nowhere")
	none := map[string]string{}
	stale := map[string]string{"WAYLAND_DISPLAY": nowhere, "DISPLAY": nowhere + ":0", "DBUS_SESSION_BUS_ADDRESS": "unix:path=" + nowhere}
	x11 := map[string]string{"DISPLAY": x11Server(t) + ".0"}
	wayland := map[string]string{"WAYLAND_DISPLAY": socket}
	gnome := map[string]string{"WAYLAND_DISPLAY": socket, "DBUS_SESSION_BUS_ADDRESS": bus}
	noBus := map[string]string{"WAYLAND_DISPLAY": socket, "DBUS_SESSION_BUS_ADDRESS": "unix:path=" + nowhere}
	noDisplay := map[string]string{"DBUS_SESSION_BUS_ADDRESS": bus}
	for _, doubt := range []bool{false, true} { // where prompts are not told of
		for program, want := range map[string]struct{ none, stale, x11, wayland, gnome, noBus, noDisplay bool }{
			"/usr/bin/pinentry-curses": {true, true, true, true, true, true, true},
			"/usr/bin/pinentry-tty":    {true, true, true, true, true, true, true},
			"/usr/bin/pinentry-gnome3": {true, true, true, true, false, true, true},
			"/usr/bin/pinentry-gtk-2":  {true, true, false, true, true, true, true},
			"/usr/bin/pinentry-qt":     {true, true, false, false, false, false, true},
			"/usr/bin/pinentry":        {true, true, doubt, doubt, doubt, doubt, true}, // a script that chooses
			"/home/a/my-pinentry":      {true, true, doubt, doubt, doubt, doubt, true},
			"":                         {true, true, doubt, doubt, doubt, doubt, true},
			"/opt/bin/pinentry-mac":    {},
			"/mnt/c/pinentry.exe":      {},
		} {
			for name, c := range map[string]struct {
				env  map[string]string
				want bool
			}{
				"none": {none, want.none}, "stale": {stale, want.stale}, "X11": {x11, want.x11}, "Wayland": {wayland, want.wayland},
				"GNOME": {gnome, want.gnome}, "without a bus": {noBus, want.noBus}, "without a display": {noDisplay, want.noDisplay},
			} {
				require.Equal(t, c.want, mayAskOnTerminal(program, c.env, !doubt), "%s, %s", program, name)
			}
		}
	}
	require.True(t, MayAskOnTerminal("pinentry-mac", map[string]string{"PINENTRY_USER_DATA": "x USE_CURSES=1"}))
}

// x11Server listens like ssh -X for an X server that it forwards to this machine.
func x11Server(t *testing.T) string {
	t.Helper()
	for number := range 1000 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 6100+number))
		if err == nil {
			t.Cleanup(func() { _ = listener.Close() })
			return fmt.Sprintf("127.0.0.1:%d", 100+number)
		}
	}
	require.Fail(t, "no free port")
	return ""
}

func TestHasX11(t *testing.T) {
	t.Parallel()
	display := x11Server(t)
	require.True(t, hasX11(map[string]string{"DISPLAY": display}))
	for _, none := range []string{"", ":", "x", display + "0", ":65535", ":99999999", ":-1", "/tmp/launch/x:0", ":59000"} {
		require.False(t, hasX11(map[string]string{"DISPLAY": none}), none)
	}
}

func TestReadsLines(t *testing.T) {
	t.Parallel()
	require.True(t, ReadsLines("/usr/bin/pinentry-tty"))
	require.False(t, ReadsLines("/usr/bin/pinentry-curses"))
}
