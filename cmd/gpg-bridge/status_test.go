package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/remoteside"
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

// TestJSONIsHarmless: what it says stays the same, and no terminal minds.
func TestJSONIsHarmless(t *testing.T) {
	for _, text := range []string{"/run/ü/S", "\x1b[2J\u009b\u202e\u200b\U000E0041\x7f\n\t\"\\", "😀"} {
		line, err := json.Marshal(share.Status{RemoteSocket: text})
		require.NoError(t, err)
		safe := asciiJSON(line)
		require.NotContains(t, safe, "\x1b")
		require.Equal(t, safe, oneLine(safe))
		var back share.Status
		require.NoError(t, json.Unmarshal([]byte(safe), &back))
		require.Equal(t, text, back.RemoteSocket)
	}
}

func TestOperationOf(t *testing.T) {
	for want, o := range map[share.Operation]remoteside.Operation{
		{Verb: "PKSIGN", Key: "AB", Millis: 1500, Outcome: "ok"}: {Verb: "PKSIGN", Keygrip: "ab", Duration: 1500 * time.Millisecond},
		{Outcome: "unanswered"}:                                  {Unanswered: true},
		{Outcome: "No pinentry <GPG Agent>", Code: 67108949}:     {Code: 67108949, Words: "No pinentry <GPG Agent>"},
		{Outcome: "error 17", Code: 17}:                          {Code: 17},
		{Outcome: `\x1b[2J`, Code: 17}:                           {Code: 17, Words: "\x1b[2J"},
	} {
		require.Equal(t, want, *operationOf(&o))
	}
}

func TestStandbyIDs(t *testing.T) {
	id := strings.Repeat("0", targetIDDigits-2) + standbySuffix // it may end so
	_, ok := standbyOf(id)
	require.False(t, ok)
	target, ok := standbyOf(standbyID(id))
	require.True(t, ok)
	require.Equal(t, id, target)
	require.Equal(t, []string{id, "00"}, onlyTargets([]string{standbyID(id), id, "00"}))
}

// TestKeepLogIsBounded, and what is kept is the newest.
func TestKeepLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close()
	log := newKeepLog(file)
	line := []byte(strings.Repeat("x", 1000) + "\n")
	for range 2 * maxKeepLog / len(line) {
		n, err := log.Write(line)
		require.NoError(t, err)
		require.Equal(t, len(line), n)
	}
	_, err = log.Write([]byte("last\n"))
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), maxKeepLog)
	require.NotContains(t, string(text), "\x00")
	require.True(t, strings.HasSuffix(string(text), " last\n"))
	again := newKeepLog(file)
	require.Equal(t, int64(len(text)), again.size)
}

func TestAbsolute(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for path, want := range map[string]string{
		"": "", "none": "none", "~/.ssh/id": "~/.ssh/id", "%d/id": "%d/id", "id": filepath.Join(here, "id"), here: here,
	} {
		require.Equal(t, want, absolute(path))
	}
}
