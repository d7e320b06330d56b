//go:build unix

package sshmaster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// why returns the reasons for a host of an ssh_config with flags.
func why(t *testing.T, lines string, flags ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	args := append([]string{"-F", file, "-oIdentityAgent=none"}, flags...)
	line := lineOf(t, append(args, "host")...)
	c, err := config.Resolve(t.Context(), config.Options{Destination: "host", Words: line.Asking()})
	require.NoError(t, err)
	var texts []string
	for _, reason := range Why(t.Context(), c) {
		texts = append(texts, reason.Text)
	}
	return texts
}

func TestWhy(t *testing.T) {
	t.Setenv("DISPLAY", ":9")
	t.Setenv("KRB5CCNAME", "/nonexistent")
	own, _ := sshkeys.NewFile(t)
	foreign, _ := sshkeys.NewFile(t)
	out, err := exec.Command(env.Tool(t, "ssh-keygen"), "-q", "-p", "-N", "secret", "-a", "1", "-Z", "chacha20-poly1305@openssh.com", "-f", foreign).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, test := range []struct {
		lines string
		flags []string
		want  []string
	}{
		{"", nil, nil},
		{"", []string{"-i", own}, nil},
		{"", []string{"-x", "-a", "-n", "-T", "-L", "1:h:2"}, nil},
		{"GSSAPIAuthentication yes", nil, nil}, // as Debian's ssh_config has it, without a ticket
		{"GSSAPIAuthentication yes\nPreferredAuthentications gssapi-with-mic", nil, []string{"GSSAPIAuthentication yes"}},
		{"", []string{"-X", "-y"}, []string{"ForwardX11 yes"}},
		{"", []string{"-i", foreign}, []string{"the key in " + foreign}},
		{"", []string{"-i", foreign, "-oPubkeyAuthentication=no"}, nil},
		{"KexAlgorithms sntrup761x25519-sha512@openssh.com", nil, []string{"KexAlgorithms"}},
		{"Ciphers aes192-cbc,3des-cbc,aes256-ctr", nil, nil},
		{"ControlMaster auto\nControlPath /nonexistent/%C", nil, []string{"ControlMaster"}},
		{"ControlMaster auto\nControlPath none", nil, nil},
		{"ControlPath /nonexistent/%C", nil, nil},
		{"Host host\nProxyJump a,b\nHost b\nPKCS11Provider /p.so\nForwardX11 yes\nCompression yes", nil, []string{`jump host "b": PKCS11Provider /p.so`}},
		{"Host host\nProxyJump a\nHost a\nProxyJump b\nHost b\nControlMaster auto\nControlPath /nonexistent/%C", nil, []string{`jump host "b": ControlMaster`}},
		{"Host host\nProxyJump a\nHost a\nProxyJump host\n", nil, nil}, // a circle, which the dial refuses
	} {
		require.Equal(t, test.want, why(t, test.lines, test.flags...), "%q", fmt.Sprint(test.lines, test.flags))
	}
}

// A Kerberos ticket has ssh try GSSAPI first.
func TestWhyWithATicket(t *testing.T) {
	dir := t.TempDir()
	klist := "#!/bin/sh\n[ \"$*\" = -s ] && exit $TICKET\nexit 3\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "klist"), []byte(klist), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TICKET", "1")
	require.Empty(t, why(t, "GSSAPIAuthentication yes"))
	t.Setenv("TICKET", "0")
	require.Equal(t, []string{"GSSAPIAuthentication yes"}, why(t, "GSSAPIAuthentication yes"))
	require.Empty(t, why(t, "GSSAPIAuthentication no"))
}
