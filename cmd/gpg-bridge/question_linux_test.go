package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/testkit/env"
)

const asksPassphrase = "Enter passphrase for key"

// isEchoing reports whether what is typed is shown.
func (s *screen) isEchoing() bool { return s.modes().Lflag&unix.ECHO != 0 }

// shellWith runs an interactive shell with job control, and in it ssh, or
// gpg-bridge ssh, which asks for the passphrase of a key.
func (f *askpassFixture) shellWith(t *testing.T, ours bool) *screen {
	t.Helper()
	program := f.host.command(t, ours, "-o", "BatchMode=no", "-o", "IdentitiesOnly=yes", "-i", f.Path("key"), "host", "echo", "log''ged in")
	shell := exec.Command(env.Tool(t, "bash"), "--norc", "--noprofile", "--noediting", "-i")
	shell.Env = append(withoutAskpass(program.Env), "PS1=prompt> ")
	s := onScreen(t, shell)
	s.expect("prompt> ", 1)
	s.keys(quoted(program.Args) + "\r")
	s.expect(asksPassphrase, 1)
	return s
}

// leave ends the shell when it has shown one prompt more than so many. What is typed there is
// shown: the question that was answered before has restored the terminal's modes.
func (s *screen) leave(prompts int) (text string) {
	s.t.Helper()
	s.expect("prompt> ", prompts+1)
	require.True(s.t, s.isEchoing(), "the terminal was left without echo")
	s.keys("exit\r")
	_, text = s.wait()
	return text
}

// stopTyping types a part of an answer and Ctrl-Z, again until the shell says that the program
// was stopped: ssh loses a signal that comes just before it reads.
func (s *screen) stopTyping(part string) {
	s.t.Helper()
	stopped := strings.Count(s.text(), "Stopped")
	require.Eventually(s.t, func() bool {
		if strings.Count(s.text(), "Stopped") > stopped {
			return true
		}
		if !s.isEchoing() {
			s.keys(part + "\x1a")
		}
		return false
	}, patience, 300*time.Millisecond, "%s", stringer(s.text))
}

// A program that is stopped while it asks restores the terminal's modes. When it goes on it asks
// anew, hides what is typed as before, and ignores what was typed before. All as with ssh.
func TestPromptIsStoppedAndAskedAgain(t *testing.T) {
	f := newAskpassFixture(t)
	for _, ours := range []bool{false, true} {
		s := f.shellWith(t, ours)
		require.False(t, s.isEchoing())
		for range 2 {
			asked := strings.Count(s.text(), asksPassphrase)
			shown := strings.Count(s.text(), "prompt> ")
			s.stopTyping("wro")
			s.expect("prompt> ", shown+1)
			eventually(t, "a terminal that shows what is typed", s.isEchoing)
			s.keys("echo see''n\r")
			s.expect("see''n", 1)
			s.keys("fg\r")
			s.expect(asksPassphrase, asked+1)
			eventually(t, "a terminal that does not", func() bool { return !s.isEchoing() })
		}
		shown := strings.Count(s.text(), "prompt> ")
		s.keys("sesame\r")
		s.expect("logged in", 1)
		text := s.leave(shown)
		require.NotContains(t, text, "sesame", "ours=%t", ours)
		require.NotContains(t, text, "wro", "ours=%t", ours)
	}
}

// The end of input is an empty answer, so that the key is not used; after part of a line, that
// part is the answer, as at the end of the line. All as with ssh.
func TestEndOfInputIsAnAnswer(t *testing.T) {
	f := newAskpassFixture(t)
	for _, keys := range []string{"\x04", "sesame\x04\x04", "sesame\r"} {
		asked := func(ours bool) int {
			s := f.shellWith(t, ours)
			require.False(t, s.isEchoing())
			for key := range strings.SplitAfterSeq(keys, "\x04") {
				s.keys(key)
			}
			s.expect("logged in", 1) // if not with this key, then with the other
			text := s.leave(1)
			return strings.Count(text, asksPassphrase)
		}
		require.Equal(t, asked(false), asked(true), "%q", keys)
	}
}

// After a wrong passphrase the same question is asked again, as with ssh.
func TestWrongPassphraseIsAskedForAgain(t *testing.T) {
	f := newAskpassFixture(t)
	var questions [2]string
	for i, ours := range []bool{false, true} {
		s := f.shellWith(t, ours)
		s.keys("wrong\r")
		s.expect(f.Path("key"), 3) // in the command, and in two questions
		s.keys("sesame\r")
		s.expect("logged in", 1)
		_, questions[i], _ = strings.Cut(strings.ReplaceAll(s.leave(1), "\r", ""), "Enter ")
	}
	require.Equal(t, questions[0], questions[1])
}

// The user is not asked about a key that could not be added to any file.
func TestUnknownHostWithoutAFileIsNoQuestion(t *testing.T) {
	h := newHost(t)
	for _, ours := range []bool{false, true} {
		s := onScreen(t, h.command(t, ours, "-o", "BatchMode=no", "-o", "StrictHostKeyChecking=ask",
			"-o", "UserKnownHostsFile=none", "-o", "GlobalKnownHostsFile=none", "host", "true"))
		s.keys("yes\r")
		status, text := s.wait()
		require.Equal(t, 255, status, "ours=%t: %s", ours, text)
		require.NotContains(t, text, "Are you sure", "ours=%t", ours)
	}
}

// Ctrl-C at a question ends the program by the signal, as with ssh: only then does a shell end
// a loop in which it runs the program.
func TestInterruptAtAQuestionEndsALoop(t *testing.T) {
	f := newAskpassFixture(t)
	for _, ours := range []bool{false, true} {
		program := f.host.command(t, ours, "-o", "BatchMode=no", "-o", "IdentitiesOnly=yes", "-i", f.Path("key"), "host", "true")
		shell := exec.Command(env.Tool(t, "bash"), "--norc", "--noprofile", "--noediting", "-i")
		shell.Env = append(withoutAskpass(program.Env), "PS1=prompt> ")
		s := onScreen(t, shell)
		s.expect("prompt> ", 1)
		s.keys("for i in 1 2 3; do " + quoted(program.Args) + "; done\r")
		s.expect(asksPassphrase, 1)
		require.Eventually(t, func() bool { // ssh loses a signal that comes just before it reads
			if strings.Count(s.text(), "prompt> ") > 1 {
				return true
			}
			if !s.isEchoing() {
				s.keys("\x03")
			}
			return false
		}, patience, 300*time.Millisecond, "%s", stringer(s.text))
		s.keys("echo status $?; exit\r")
		_, text := s.wait()
		require.Contains(t, text, "status 130", "ours=%t", ours)
		require.Equal(t, 1, strings.Count(text, asksPassphrase), "ours=%t", ours)
		require.NotContains(t, text, "gpg-bridge: ")
	}
}

type stringer func() string

func (s stringer) String() string { return s() }
