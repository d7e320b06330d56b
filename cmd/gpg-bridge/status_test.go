package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/ui"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestTable(t *testing.T) {
	require.Equal(t, "no bridges\n", table(nil, noon))
	all := []share.Status{
		{
			Target: "dev", State: share.Up, Since: noon.Add(-3 * time.Minute), Kind: share.Background,
			RemoteSocket: "/run/S", Agent: "/home/S", Sessions: 1, SessionsTotal: 17, Reconnects: 2,
			LastOperation: &share.Operation{
				Verb: "PKSIGN", Key: strings.Repeat("AB", 20), At: noon.Add(-5 * time.Second), Millis: 1234, Outcome: "ok",
			},
			Problem: &share.Problem{Text: "lost", Remedy: "wait", At: noon.Add(-4 * time.Minute)},
		},
		{
			Target: "evil\x1b[2J\tx\ny", State: share.Waiting, Since: noon.Add(-50 * time.Hour), Kind: share.Session, PID: 7,
			Problem: &share.Problem{Text: "broken\x1b", Remedy: "mend\nit", At: noon},
		},
	}
	require.Equal(t, `TARGET            STATE                     FOR     SESSIONS  LAST OPERATION                      RECONNECTS  REMOTE SOCKET  AGENT
dev               up                        3 min   1/17      PKSIGN ABABABAB 5 s ago, 1.2 s, ok  2           /run/S         /home/S
  4 min ago, over: lost
evil\x1b[2J x; y  waiting (ssh, process 7)  2 days  0/0       -                                   0           -              -
  0 s ago: broken\x1b
  mend; it
`, table(all, noon))
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 s", 59 * time.Second: "59 s", time.Minute: "1 min", 59*time.Minute + 59*time.Second: "59 min",
		time.Hour: "1 h", 47 * time.Hour: "47 h", 48 * time.Hour: "2 days",
	} {
		require.Equal(t, want, ago(noon, noon.Add(-d)), "%v", d)
	}
}

// TestJSONIsHarmless: the escaped JSON means the same, and cannot control a terminal.
func TestJSONIsHarmless(t *testing.T) {
	for _, text := range []string{"/run/ü/S", "\x1b[2J\u009b\u202e\u200b\U000E0041\x7f\n\t\"\\", "😀"} {
		line, err := json.Marshal(share.Status{RemoteSocket: text})
		require.NoError(t, err)
		safe := asciiJSON(line)
		require.NotContains(t, safe, "\x1b")
		require.Equal(t, safe, ui.OneLine(safe))
		var back share.Status
		require.NoError(t, json.Unmarshal([]byte(safe), &back))
		require.Equal(t, text, back.RemoteSocket)
	}
}
