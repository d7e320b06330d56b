package pinentry

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
)

// askingHome is a GnuPG home whose agent asks for a passphrase, with this pinentry, for
// every signature that sign begins.
func askingHome(t *testing.T, script string) (home *gpghome.Home, sign func()) {
	t.Helper()
	home = gpghome.ForTest(t)
	key, err := home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "prompt@example.org", Passphrase: "secret"})
	require.NoError(t, err)
	require.NoError(t, home.SetPinentry(script))
	return home, func() {
		ctx, cancel := context.WithCancel(t.Context())
		signing := make(chan struct{})
		go func() {
			defer close(signing)
			_, _, _ = home.Gpg(ctx, strings.NewReader("x"), "-u", key.Fingerprint, "--sign")
		}()
		t.Cleanup(func() { cancel(); <-signing })
	}
}

func agentOf(t *testing.T, home *gpghome.Home) int {
	t.Helper()
	pid, err := home.AgentPID(t.Context())
	require.NoError(t, err)
	return pid
}

// TestOfAgent: a real agent's prompt is found, with the terminal that the pinentry's own
// child has open.
func TestOfAgent(t *testing.T) {
	t.Parallel()
	master, slave, err := fakesshd.OpenPTY()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	var stat unix.Stat_t
	require.NoError(t, unix.Fstat(int(slave.Fd()), &stat))

	script := "#!/bin/sh\nsleep 600 3<" + slave.Name() + " &\necho $! >\"$0.child\"\ntrap 'kill %1' TERM INT\n" +
		strings.TrimPrefix(gpghome.PinentryNever(), "#!/bin/sh\n") + "kill %1\n"
	home, sign := askingHome(t, script)
	agent := agentOf(t, home)
	found, err := OfAgent(agent)
	require.NoError(t, err)
	require.Empty(t, found)

	before := Now()
	sign()
	call, err := home.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	require.Eventually(t, func() bool { // its child opens the terminal when it is its turn
		found, err = OfAgent(agent)
		return err != nil || len(found) != 1 || found[0].Uses(uint64(stat.Rdev))
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, call.PID, found[0].PID)
	require.Greater(t, found[0].Started, before.Add(-50*time.Millisecond))
	require.Less(t, found[0].Started, Now())
	require.True(t, found[0].DevicesKnown)
	require.True(t, found[0].Uses(uint64(stat.Rdev)))
	require.False(t, found[0].Uses(0))
}

// TestOfNoAgent: the process ID came over a socket, and may be anybody's.
func TestOfNoAgent(t *testing.T) {
	t.Parallel()
	other := exec.Command("sleep", "600")
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	for _, pid := range []int{1, os.Getpid(), other.Process.Pid, 1 << 30} {
		_, err := OfAgent(pid)
		require.ErrorIs(t, err, ErrNotAgent)
	}
}

// TestOfEndedAgent: an agent that has ended does not count even if its parent has not
// noticed, as the first process of a container may not; nor does another agent that has its
// process ID.
func TestOfEndedAgent(t *testing.T) {
	t.Parallel()
	ended := exec.Command(env.Tool(t, "gpg-agent"), "--version")
	require.NoError(t, ended.Start())
	defer func() { _ = ended.Wait() }()
	pid := ended.Process.Pid
	require.Eventually(t, func() bool { stat, err := readStat(pid); return err == nil && stat.state == "Z" }, 20*time.Second, time.Millisecond)
	_, err := OfAgent(pid)
	require.ErrorIs(t, err, ErrNotAgent)

	home := gpghome.ForTest(t)
	require.NoError(t, home.StartAgent(t.Context()))
	agent, err := AgentOf(agentOf(t, home))
	require.NoError(t, err)
	_, err = agent.Prompts()
	require.NoError(t, err)
	all, err := Agents()
	require.NoError(t, err)
	require.Contains(t, all, agent)
	require.NotContains(t, all, Agent{member{pid, agent.process.start}})
	agent.process.start--
	_, err = agent.Prompts()
	require.ErrorIs(t, err, ErrNotAgent)
}

// TestRest: what is left of a prompt when the process that the agent started has ended.
func TestRest(t *testing.T) {
	t.Parallel()
	child := exec.Command("sleep", "600")
	require.NoError(t, child.Start())
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	stat, err := readStat(child.Process.Pid)
	require.NoError(t, err)
	now, ok := describe(stat).Rest()
	require.True(t, ok)
	require.Equal(t, child.Process.Pid, now.PID)
	require.True(t, now.Same(describe(stat)))
	require.True(t, describe(procStat{pid: 1 << 30}).DevicesKnown, "it has ended meanwhile")
	_, ok = Process{family: []member{{1 << 30, 1}, {stat.pid, stat.start}}}.Rest()
	require.False(t, ok, "it is no pinentry")
	_, ok = Process{family: []member{{stat.pid, stat.start - 1}}}.Rest()
	require.False(t, ok, "it is another process")
}

func TestChildrenByParent(t *testing.T) {
	t.Parallel()
	child := exec.Command("sleep", "600")
	require.NoError(t, child.Start())
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	children, err := childrenByParent(os.Getpid())
	require.NoError(t, err)
	require.Contains(t, children, child.Process.Pid)
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	stat, err := parseStat("42 (a) (b 1) S 7 42 42 34819 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 66847 1 1\n")
	require.NoError(t, err)
	require.Equal(t, procStat{pid: 42, name: "a) (b 1", state: "S", parent: 7, group: 42, foreground: 42, terminal: unix.Mkdev(136, 3), start: 66847}, stat)
	require.Equal(t, unix.Mkdev(136, 300), terminalNumber(300&0xff|136<<8|(300&^0xff)<<12))
	for _, text := range []string{"", "42", "42 (", "42 (x) S 1", ") (", "x (y) S 7 42 42 0 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 66847"} {
		_, err := parseStat(text)
		require.Error(t, err, text)
	}
}

// TestEnd: a prompt is ended with what it has started, even if it ignores SIGINT; the agent
// then has its answer, and the next prompt is another one.
func TestEnd(t *testing.T) {
	t.Parallel()
	never := strings.TrimPrefix(gpghome.PinentryNever(), "#!/bin/sh\n")
	for name, script := range map[string]string{
		"shell":          "#!/bin/sh\n" + never,
		"child":          "#!/bin/sh\nsleep 600 &\necho $! >\"$0.child\"\n" + never,
		"ignores SIGINT": "#!/bin/sh\ntrap '' INT\n" + never,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, sign := askingHome(t, script)
			sign()
			_, err := home.WaitPinentry(t.Context(), "GETPIN")
			require.NoError(t, err)
			agent := agentOf(t, home)
			found, err := OfAgent(agent)
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.NoError(t, found[0].End(t.Context()))
			for _, m := range found[0].family {
				require.False(t, m.alive())
			}
			require.Eventually(t, func() bool { found, err := OfAgent(agent); return err == nil && len(found) == 0 }, 20*time.Second, 20*time.Millisecond)
		})
	}
}

// TestEndOfAnother: a process that has got the ID of one that has ended is left alone.
func TestEndOfAnother(t *testing.T) {
	t.Parallel()
	other := exec.Command("sleep", "600")
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	p := Process{PID: other.Process.Pid, family: []member{{other.Process.Pid, 1}}}
	require.NoError(t, p.End(t.Context()))
	require.NoError(t, other.Process.Signal(unix.Signal(0)))
	stat, err := readStat(other.Process.Pid)
	require.NoError(t, err)
	require.True(t, stat.alive())
}
