//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

const (
	dirMode    = 0o755
	sharedMode = 0o777 | os.ModeSticky
	neighbour  = 65534 // another user of the laptop: nobody
)

// A street is a background whose user works in one directory, while a neighbour
// has files in another, which is as /tmp is: it is the laptop's TMPDIR.
type street struct {
	*background
	work   string // of the user; deeper than the others, so that ".." leads elsewhere
	shared string
	ran    string // made by the neighbour's programs
	seen   string // what a ProxyCommand of the user's saw
}

func (s *scene) street(t *testing.T) *street {
	t.Helper()
	env.Tool(t, "socat")
	top := env.ShortDir(t)
	st := &street{s.background(t), filepath.Join(top, "work", "here"), env.ShortDir(t), filepath.Join(top, "ran"), filepath.Join(top, "seen")}
	require.NoError(t, os.MkdirAll(filepath.Join(st.work, "bin"), dirMode))
	require.NoError(t, os.Chmod(st.shared, sharedMode))
	st.program(t, filepath.Join(st.work, "bin", "relay"), "{ env -0; printf 'CWD=%s\\0' \"$(pwd -P)\"; } >"+st.seen+"\nexec socat - TCP:$1:$2\n")
	return st
}

func (st *street) program(t *testing.T, path, script string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), dirMode))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), dirMode))
}

// trap puts a program of the neighbour's where a path below the shared directory
// leads.
func (st *street) trap(t *testing.T, name string) {
	t.Helper()
	st.program(t, filepath.Join(st.shared, name), "echo $0 >>"+st.ran+"\n")
	st.giveAway(t)
}

// giveAway makes all in the shared directory the neighbour's.
func (st *street) giveAway(t *testing.T) {
	t.Helper()
	require.NoError(t, filepath.Walk(st.shared, func(path string, _ os.FileInfo, err error) error {
		if err != nil || path == st.shared {
			return err
		}
		return os.Lchown(path, neighbour, neighbour)
	}))
}

// in runs gpg-bridge in a directory.
func (st *street) in(t *testing.T, dir string, environment []string, args ...string) result {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, append([]string{"TMPDIR=" + st.shared}, environment...)
	return launchAs(t, cmd, st.laptop, nil).wait(t)
}

// requireDetached: the process runs in the private directory, and no variable of
// its leads anywhere from there.
func (st *street) requireDetached(t *testing.T, cwd string, environ []string) {
	t.Helper()
	require.Equal(t, filepath.Join(st.laptop.Dir(), "gpg-bridge"), cwd)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "GNUPGHOME", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "PWD", "GPG_TTY", "SSH_AUTH_SOCK":
			for path := range strings.SplitSeq(value, ":") {
				require.True(t, filepath.IsAbs(path), "%s", entry)
			}
		default:
			require.NotContains(t, value, "../", "%s", entry)
		}
	}
}

func (st *street) requireProcessDetached(t *testing.T, pid int) {
	t.Helper()
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	require.NoError(t, err)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	st.requireDetached(t, cwd, strings.Split(strings.TrimSuffix(string(environ), "\x00"), "\x00"))
}

// relative is an environment where all that can be is relative to the user's
// directory.
func (st *street) relative(t *testing.T) []string {
	t.Helper()
	home, err := filepath.Rel(st.work, st.laptop.Dir())
	require.NoError(t, err)
	return []string{
		"PATH=./bin::" + os.Getenv("PATH"), "LD_LIBRARY_PATH=/opt/x/lib:", "GNUPGHOME=" + home, "PYTHONPATH=src:", "GPG_TTY=tty", "SSH_AUTH_SOCK=agent",
		"ANY=../any", "PERL5OPT=-I../lib",
	}
}

// What a neighbour has put into /tmp is not run, loaded or used by a bridge in the
// background, whatever is relative in the environment of whoever started it.
func TestBackgroundBesideANeighbour(t *testing.T) {
	up := func(st *street, args ...string) []string {
		return append([]string{"up", "-F", st.sshd.ConfigFile, "host"}, args...)
	}
	t.Run("library", func(t *testing.T) {
		st := stage{}.set(t).street(t)
		for _, name := range []string{"libc.so.6", "libgcrypt.so.20", "libgpg-error.so.0", "libz.so.1"} { // of gpg-bridge, gpg or ssh
			require.NoError(t, os.WriteFile(filepath.Join(st.shared, name), []byte("not what you want"), dirMode))
		}
		st.giveAway(t)
		r := st.in(t, st.work, []string{"LD_LIBRARY_PATH=/opt/x/lib:"}, up(st)...)
		require.Zero(t, r.code, "%s", r.stderr)
		st.sign(t)
	})
	t.Run("program", func(t *testing.T) {
		st := stage{}.set(t).street(t)
		for _, name := range []string{"relay", "gpg", "gpgconf", "ssh"} {
			st.trap(t, name)
			st.trap(t, "bin/"+name)
		}
		r := st.in(t, st.work, []string{"PATH=./bin::" + os.Getenv("PATH")}, up(st, "-o", "ProxyCommand=relay %h %p")...)
		require.NoFileExists(t, st.ran)
		require.Zero(t, r.code, "%s", r.stderr)
		st.sign(t)
	})
	t.Run("program in the ssh_config", func(t *testing.T) {
		st := stage{}.set(t).street(t)
		st.trap(t, "relay")
		for _, command := range []string{"./relay", "../relay", "env ../relay"} {
			r := st.in(t, st.work, nil, up(st, "-o", "ProxyCommand="+command)...)
			require.Equal(t, 1, r.code)
			r.requireTwoLines(t, "depends on the directory that ssh is called in", "write the whole path")
			require.NoFileExists(t, st.ran)
		}
	})
	t.Run("home", func(t *testing.T) {
		st := stage{}.set(t).street(t)
		r := st.in(t, st.work, st.relative(t), up(st, "-o", "ProxyCommand=relay %h %p")...)
		require.Zero(t, r.code, "%s", r.stderr)
		st.sign(t)
		left, err := os.ReadDir(st.shared)
		require.NoError(t, err)
		require.Empty(t, left)

		st.requireProcessDetached(t, st.status(t)[0].PID)
		seen, err := os.ReadFile(st.seen)
		require.NoError(t, err)
		environ := strings.Split(strings.TrimSuffix(string(seen), "\x00"), "\x00")
		last := len(environ) - 1
		st.requireDetached(t, strings.TrimPrefix(environ[last], "CWD="), environ[:last])

		logs, err := filepath.Glob(st.laptop.Dir() + "/gpg-bridge/*.log")
		require.NoError(t, err)
		require.Len(t, logs, 1)
		log, err := os.ReadFile(logs[0])
		require.NoError(t, err)
		require.Regexp(t, `not in the environment of the bridge, .*\bPERL5OPT\b`, string(log))
		require.NotContains(t, string(log), "-I../lib", "names, no values")
	})
	t.Run("user in the shared directory", func(t *testing.T) {
		st := stage{}.set(t).street(t)
		st.trap(t, "bin/relay")
		r := st.in(t, st.shared, []string{"PATH=./bin:" + os.Getenv("PATH")}, up(st, "-o", "ProxyCommand=relay %h %p")...)
		require.Equal(t, 1, r.code, "%s", r.stderr)
		require.NoFileExists(t, st.ran)
		require.NoError(t, os.Mkdir(filepath.Join(st.shared, "gnupg"), 0o700))
		st.giveAway(t)
		r = st.in(t, st.shared, []string{"GNUPGHOME=gnupg"}, up(st)...)
		require.Equal(t, 1, r.code)
		r.requireTwoLines(t, `GNUPGHOME is "gnupg", and a bridge in the background does not use that: "`+st.shared+`/gnupg" is not safe to use`, "set GNUPGHOME to a directory of yours")
	})
}

// The process that holds a bridge for a connection that was handed over is one
// in the background, too.
func TestAttendantBesideANeighbour(t *testing.T) {
	s := stage{}.set(t)
	p := s.proxied(t, "ProxyCommand PROXY", "ProxyUseFdpass yes")
	st := &street{background: p.background, shared: env.ShortDir(t)}
	require.NoError(t, os.Chmod(st.shared, sharedMode))
	require.NoError(t, os.WriteFile(filepath.Join(st.shared, "libc.so.6"), []byte("not what you want"), dirMode))
	st.giveAway(t)
	session := p.toolWith(t, []string{"TMPDIR=" + st.shared, "LD_LIBRARY_PATH=/opt/x/lib:", "PYTHONPATH=.."}, "ssh", "-F", p.config, "dev", "echo started; exec sleep 600")
	session.waitFor(t, &session.stdout, "started\n")
	p.awaitUp(t)
	for _, command := range []string{"attend", "keep"} {
		pids := p.children(command)
		require.Len(t, pids, 1)
		st.requireProcessDetached(t, pids[0])
	}
	p.endSession(t, session)
	p.awaitNone(t, "attend")
}
