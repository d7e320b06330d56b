package sshfwd

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/terminal"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
)

// The real ssh, on the same terminal, asks for the same.
func TestTerminalAsksForWhatSSHAsks(t *testing.T) {
	program := env.Tool(t, "ssh")
	slave := fakesshd.OddPTY(t)
	tty, ok := terminal.Open(slave, slave)
	require.True(t, ok)
	asked := make(chan []byte, 1)
	srv := &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{
		"session": func(_ *fakesshd.Conn, newCh ssh.NewChannel) {
			ch, reqs, err := newCh.Accept()
			if err != nil {
				return
			}
			for req := range reqs {
				if req.Type == "pty-req" {
					asked <- req.Payload
				}
				_ = req.Reply(req.Type != "shell", nil)
			}
			_ = ch.Close()
		},
	}}
	ours := ptyRequest(tty.PTY("xterm-256color"))
	cmd := exec.Command(program, sshArgs(t, srv)...)
	cmd.Stdin = slave
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	require.Equal(t, decodePTY(t, <-asked), decodePTY(t, ours))
}

// sshArgs starts srv and returns the arguments with which ssh logs in there.
func sshArgs(t *testing.T, srv *fakesshd.Server) []string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	srv.AuthorizedKeys = append(srv.AuthorizedKeys, signer.PublicKey())
	fakesshd.Start(t, srv)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	host, port, err := net.SplitHostPort(srv.Addr())
	require.NoError(t, err)
	return []string{
		"-F", "none", "-tt", "-i", file, "-p", port, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "tester@" + host,
	}
}

type decodedPTY struct {
	Term                         string
	Cols, Rows, XPixels, YPixels uint32
	modes                        map[byte]uint32
}

func decodePTY(t *testing.T, payload []byte) decodedPTY {
	t.Helper()
	var request struct {
		Term                         string
		Cols, Rows, XPixels, YPixels uint32
		Modes                        string
	}
	require.NoError(t, ssh.Unmarshal(payload, &request))
	modes := make(map[byte]uint32)
	for rest := []byte(request.Modes); len(rest) > 1; rest = rest[5:] {
		modes[rest[0]] = uint32(rest[1])<<24 | uint32(rest[2])<<16 | uint32(rest[3])<<8 | uint32(rest[4])
	}
	return decodedPTY{request.Term, request.Cols, request.Rows, request.XPixels, request.YPixels, modes}
}
