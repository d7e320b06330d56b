package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// A script under the name ssh, first in PATH, runs gpg-bridge ssh: it does what ssh does, with
// another such script behind it, and with an ssh of ours on the way to the host. The host hears
// nothing of how we found the real ssh.
func TestScriptNamedSSH(t *testing.T) {
	h := newHostWith(t, sshd.Config{Options: []string{"AcceptEnv *"}})
	model := h.command(t, true)
	script := "#!/bin/sh\nexec " + quoted(model.Args[:6]) + " \"$@\"\n"
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755))
	}
	through := "ProxyCommand=ssh -F " + h.srv.ConfigFile + " -W 127.0.0.1:" + strconv.Itoa(h.srv.Port) + " host"
	for _, args := range [][]string{
		{"-V"},
		{"-Q", "mac"},
		{"-F", h.srv.ConfigFile, "-G", "host"},
		{"-F", h.srv.ConfigFile, "-o", "SendEnv=GPG_*", "host", "echo in; env | grep GPG_BRIDGE_SSH; exit 3"},
		{"-F", h.srv.ConfigFile, "-o", through, "host", "echo in; exit 4"},
		{"-Z"},
	} {
		run := func(ssh string, before ...string) ending {
			cmd := exec.Command(ssh, args...)
			cmd.Env = append(model.Env, "PATH="+strings.Join(append(before, os.Getenv("PATH")), ":"))
			return runPlainly(t, cmd, "", 0)
		}
		require.Equal(t, run(env.Tool(t, "ssh")), run(filepath.Join(dirs[0], "ssh"), dirs...), args)
	}
}

// Two such scripts that do not answer what they are lead to the real ssh all the same, and so
// does the ssh -W that the real one runs.
func TestSilentScriptNamedSSH(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	model := h.command(t, true)
	script := "#!/bin/sh\n[ \"$GPG_BRIDGE_SSH\" != '?' ] || sleep 100\nexec " + quoted(model.Args[:6]) + " \"$@\"\n"
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755))
	}
	through := "ProxyCommand=ssh -F " + h.srv.ConfigFile + " -W 127.0.0.1:" + strconv.Itoa(h.srv.Port) + " host"
	for _, args := range [][]string{
		{"-Q", "mac"},
		{"-F", h.srv.ConfigFile, "-o", through, "-W", "127.0.0.1:" + strconv.Itoa(h.srv.Port), "host"},
		{"-F", h.srv.ConfigFile, "host", "echo in; exit 4"},
	} {
		run := func(ssh string, before ...string) ending {
			cmd := exec.Command(ssh, args...)
			cmd.Env = append(model.Env, "PATH="+strings.Join(append(before, os.Getenv("PATH")), ":"))
			return runPlainly(t, cmd, "", 0)
		}
		require.Equal(t, run(env.Tool(t, "ssh")), run(filepath.Join(dirs[0], "ssh"), dirs...), args)
	}
}
