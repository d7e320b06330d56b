package sshsession

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/ui"
)

// A message of the day cannot control the terminal, whatever the host puts there.
func TestMessageOfTheDayIsText(t *testing.T) {
	var out bytes.Buffer
	b := &sessionBridge{run: &run{service: &serve.Service{Options: serve.Options{UI: &ui.UI{Stdout: &out}}}}, settled: make(chan struct{})}
	lines := []string{"\x1b[1;32mwelcome\x1b[0m\tto the host", "", "\x1b]0;title\x07\x1b[2J\r\u009b31m\u202eend"}
	b.showMOTD(lines)
	require.Equal(t, "welcome\tto the host\n\n"+`\x1b]0;title\x07\x1b[2J\x0d\xc2\x9b31m\xe2\x80\xaeend`+"\n", out.String())

	out.Reset()
	b.lateSince = time.Now()
	b.showMOTD(lines)
	require.Empty(t, out.String(), "the shell has begun")
}
