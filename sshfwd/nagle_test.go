package sshfwd

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/sshtest"
)

func TestDelaysUntilSession(t *testing.T) {
	for version, want := range map[string]bool{
		"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3": true,
		"SSH-2.0-OpenSSH_for_Windows_9.5":        true,
		"SSH-2.0-OpenSSH_6.7":                    true,
		"SSH-2.0-OpenSSH_10.0p2":                 true,
		"SSH-2.0-OpenSSH_10.1":                   false,
		"SSH-2.0-OpenSSH_10.10p1":                false,
		"SSH-2.0-OpenSSH_11.0":                   false,
		"SSH-2.0-OpenSSH":                        true,
		"SSH-2.0-OpenSSH_":                       true,
		"SSH-2.0-dropbear_2022.83":               false,
		"SSH-2.0-Go":                             false,
	} {
		require.Equal(t, want, delaysUntilSession(version), version)
	}
}

func TestDisableServerNagle(t *testing.T) {
	for _, test := range []struct {
		version  string
		sessions int32
		deny     bool
	}{
		{version: "SSH-2.0-OpenSSH_9.2p1", sessions: 1},
		{version: "SSH-2.0-OpenSSH_10.1", sessions: 0},
		{version: "SSH-2.0-OpenSSH_9.2p1", sessions: 1, deny: true},
	} {
		var sessions atomic.Int32
		srv := &sshtest.Server{Version: test.version, ChannelHandlers: map[string]sshtest.ChannelHandler{
			"session": func(_ *sshtest.Conn, newCh ssh.NewChannel) { // one request, then the client's CLOSE
				ch, reqs, err := newCh.Accept()
				if err != nil {
					return
				}
				sessions.Add(1)
				for req := range reqs {
					_ = req.Reply(req.Type == "subsystem" && !test.deny, nil)
				}
				_ = ch.Close()
			},
		}}
		err := embedded(t, srv).DisableServerNagle(testContext(t))
		require.Equal(t, test.sessions, sessions.Load(), test.version)
		require.Equal(t, test.deny, err != nil)
	}
}

func TestDisableServerNagleOfSSHD(t *testing.T) {
	client := realLink(t)
	require.NoError(t, client.DisableServerNagle(testContext(t)))
	require.NoError(t, client.Run(testContext(t), "true", nil, nil, nil), "the connection is as good as before")
}
