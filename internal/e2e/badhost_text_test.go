//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/fakesshd"
)

var errNotYou = errors.New("not you")

// What comes before the log-in, from a server that goes no further.
func TestHostileHandshake(t *testing.T) {
	v := newVictim(t)
	evil := v.evil()
	version := "SSH-2.0-" + strings.ReplaceAll(evil, "\n", "") + "\r\n"
	kexInit := append(append([]byte{20}, make([]byte, 16)...), ssh.Marshal(struct {
		A, B, C, D, E, F, G, H, I, J []string
		Guess                        bool
		Reserved                     uint32
	}{A: []string{evil}, B: []string{evil}, C: []string{evil}, D: []string{evil}, E: []string{evil}, F: []string{evil}, G: []string{evil}, H: []string{evil}})...)
	for name, c := range map[string]struct {
		sent, text string
	}{
		"version string":                 {version, "Connection closed by "},
		"version string with no SSH":     {evil, "what no SSH server does"},
		"old version":                    {"SSH-1.5-" + version[8:], ""},
		"line without end":               {strings.Repeat("x", 1<<20), "too much before its SSH version"},
		"lines without end":              {strings.Repeat("EVIL\x1b]0;owned\x07\n", 100_000), "too much before its SSH version"},
		"lines that no server sends":     {strings.Repeat(evil+"\n", 100_000), "what no SSH server does"},
		"disconnect":                     {version + string(packet(disconnectMessage(evil))), `EVIL\x1b]0;owned`},
		"long disconnect":                {version + string(packet(disconnectMessage(strings.Repeat(evil, 50)))), `EVIL\x1b]0;owned`},
		"packet that is too long":        {version + string(packet(disconnectMessage(strings.Repeat(evil, 5000)))), "too large"},
		"debug":                          {version + string(packet(debugMessage(evil))) + string(packet(disconnectMessage(""))), ""},
		"no algorithm that exists":       {version + string(packet(kexInit)), "no matching "},
		"packet of 4 GB":                 {version + "\xff\xff\xff\xff\x08" + evil, ""},
		"packet without a length":        {version + "\x00\x00\x00\x00\x00" + evil, ""},
		"not a packet":                   {version + evil + evil, ""},
		"answer to what was never asked": {version + string(packet(authFailureMessage(evil))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			addr := v.meetsRaw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, c.sent) })
			r := v.launch(t, addr, "host", "echo").wait(t)
			require.Equal(t, 255, r.code)
			require.Empty(t, r.stdout)
			requireClean(t, r.stderr)
			require.Less(t, len(r.stderr), 4000)
			r.requireRefusal(t, c.text, "")
		})
	}
}

// What comes in the log-in.
func TestHostileLogin(t *testing.T) {
	v := newVictim(t)
	evil := v.evil()
	send := func(message []byte, times int, refuse error) fakesshd.Faults {
		return fakesshd.Faults{KeyOffered: func(conn ssh.ConnMetadata) error {
			for range times {
				if err := fakesshd.SendRaw(conn, message); err != nil {
					return err
				}
			}
			return refuse
		}}
	}
	methods := func(names string) fakesshd.Faults {
		return fakesshd.Faults{
			KeyOffered: func(ssh.ConnMetadata) error { return errNotYou },
			Questions: func(conn ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) error {
				if _, err := ask("", "", nil, nil); err != nil {
					return err
				}
				return errors.Join(fakesshd.SendRaw(conn, authFailureMessage(names)), errNotYou)
			},
		}
	}
	for name, c := range map[string]struct {
		faults fakesshd.Faults
		text   string
	}{
		"disconnect":      {send(disconnectMessage(evil), 1, errNotYou), `EVIL\x1b]0;owned`},
		"long disconnect": {send(disconnectMessage(strings.Repeat(evil, 400)), 1, errNotYou), `EVIL\x1b]0;owned`},
		"methods":         {methods(evil), `EVIL\x1b]0;owned`},
		"long methods":    {methods(strings.Repeat(evil, 800)), `EVIL\x1b]0;owned`},
		"forged success":  {send([]byte{52}, 1, errNotYou), ""},
		"not a message":   {send([]byte{200, 1, 2, 3}, 1, errNotYou), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := v.launch(t, v.meets(t, &fakesshd.Server{Faults: c.faults}), "host", "echo").wait(t)
			require.Equal(t, 255, r.code)
			require.Empty(t, r.stdout)
			r.requireOneMessage(t, c.text)
		})
	}
	t.Run("debug", func(t *testing.T) {
		r := v.launch(t, v.meets(t, &fakesshd.Server{Faults: send(debugMessage(evil), 1000, nil)}), "host", "echo on").wait(t)
		r.requireOK(t)
		require.Equal(t, "on\n", r.stdout)
	})
	t.Run("lines before the version", func(t *testing.T) {
		line := strings.NewReplacer("\r", "", "\x00", "").Replace(evil) // with those ssh ends, and so do we
		preface := []byte(strings.Repeat(line+"\n", 10))
		r := v.launch(t, v.meets(t, &fakesshd.Server{Faults: fakesshd.Faults{Preface: preface}}), "host", "echo on").wait(t)
		r.requireOK(t)
		requireClean(t, r.stderr)
	})
	t.Run("banner", func(t *testing.T) {
		r := v.launch(t, v.meets(t, &fakesshd.Server{Banner: "Welcome\tto " + evil}), "host", "echo on").wait(t)
		require.Zero(t, r.code)
		require.Equal(t, "on\n", r.stdout)
		require.Contains(t, r.stderr, "Welcome\tto EVIL\\x1b]0;owned\\x07\\x1b[31m\\xc2\\x9b31m\\x9b31m\\x0d\\x08\\x00\\x7f\\xe2\\x80\\xae")
		// A banner may say what it likes, line by line, as with ssh.
		requireClean(t, strings.ReplaceAll(r.stderr, "\ngpg-bridge: forged\\x0d", ""))
	})
}

// Questions reach the terminal, or the askpass program, as text, and end.
func TestHostileQuestions(t *testing.T) {
	v := newVictim(t)
	evil := v.evil()
	askpass := filepath.Join(v.dir, "askpass")
	asked := filepath.Join(v.dir, "asked")
	require.NoError(t, os.WriteFile(askpass, []byte("#!/bin/sh\nprintf '%s\\n' \"$1\" >>"+asked+"\necho answer\n"), 0o700))
	t.Run("texts", func(t *testing.T) {
		r := v.ask(t, askpass, func(ask ssh.KeyboardInteractiveChallenge) error {
			answers, err := ask(evil, evil, []string{evil, evil}, []bool{true, false})
			if err == nil && strings.Join(answers, "+") != "answer+answer" {
				err = errNotYou
			}
			return err
		})
		require.Zero(t, r.code, "%q", r.stderr)
		require.Equal(t, "on\n", r.stdout)
		requireClean(t, strings.ReplaceAll(r.stderr, "\ngpg-bridge: forged\\x0d", ""))
		prompts, err := os.ReadFile(asked)
		require.NoError(t, err)
		require.Equal(t, 2, bytes.Count(prompts, []byte("EVIL\\x1b]0;owned")), "%q", prompts)
		requireClean(t, strings.ReplaceAll(string(prompts), "\ngpg-bridge: forged\\x0d", ""))
	})
	t.Run("without end", func(t *testing.T) {
		long := strings.Repeat(evil, 500)
		r := v.ask(t, askpass, func(ask ssh.KeyboardInteractiveChallenge) error {
			for {
				if _, err := ask(long, long, nil, nil); err != nil {
					return err
				}
			}
		})
		require.Equal(t, 255, r.code)
		require.Less(t, len(r.stderr), 4*65536+4000)
		requireClean(t, strings.ReplaceAll(r.stderr, "\ngpg-bridge: forged\\x0d", ""))
		require.Contains(t, r.stderr, "ermission denied")
	})
}

// ask runs the program with an askpass program against a server that asks.
func (v *victim) ask(t *testing.T, askpass string, questions func(ssh.KeyboardInteractiveChallenge) error) result {
	t.Helper()
	addr := v.meets(t, &fakesshd.Server{Faults: fakesshd.Faults{
		KeyOffered: func(ssh.ConnMetadata) error { return errNotYou },
		Questions:  func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) error { return questions(ask) },
	}})
	cmd := v.command(addr, "host", "echo on")
	cmd.Path, cmd.Args = "/usr/bin/env", append([]string{"env", "SSH_ASKPASS=" + askpass, "SSH_ASKPASS_REQUIRE=force"}, cmd.Args...)
	return launchAs(t, cmd, v.laptop, nil).wait(t)
}
