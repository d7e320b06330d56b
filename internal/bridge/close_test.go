//go:build unix

package bridge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// A client is a process on the host that speaks Assuan itself.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dialAgent(socket string) (*client, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	c := &client{conn, bufio.NewReader(conn)}
	_ = conn.SetDeadline(time.Now().Add(within))
	return c, c.expect("OK")
}

// expect reads up to the line that begins so.
func (c *client) expect(prefix string) error {
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("waiting for %q: %w", prefix, err)
		}
		if strings.HasPrefix(line, prefix) {
			return nil
		}
	}
}

func (c *client) ask(command, prefix string) error {
	if _, err := io.WriteString(c, command+"\n"); err != nil {
		return err
	}
	return c.expect(prefix)
}

// converse is a whole session; every third client hangs up without a BYE.
func converse(socket string, nth int) error {
	c, err := dialAgent(socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if nth%3 == 0 {
		return nil
	}
	if err := c.ask("GETINFO version", "OK"); err != nil {
		return err
	}
	return c.ask("BYE", "OK closing connection")
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc on this machine")
	}
	return len(entries)
}

func TestSessionsLeaveNothing(t *testing.T) {
	const sessions, workers = 1000, 20
	alice := newLaptop(t)
	account := sshd.NewAccount(t, sshd.AccountConfig{})
	server := sshd.Start(t, sshd.Config{Account: account})
	u := start(t, connect(t, server.ConfigFile), alice.local(), Options{})
	u.requireVerified(t)
	require.NoError(t, converse(u.Path(), 1))
	eventually(t, func() bool { return len(u.server.Sessions()) == 0 })
	files, goroutines := descriptors(t), runtime.NumGoroutine()

	var all sync.WaitGroup
	errs := make(chan error, workers)
	for worker := range workers {
		all.Go(func() {
			for i := range sessions / workers {
				if err := converse(u.Path(), worker+i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	eventually(t, func() bool { return len(u.server.Sessions()) == 0 })
	eventually(t, func() bool { return descriptors(t) <= files })
	eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines })
	u.close(t)
	require.Empty(t, u.all())
}

// A signature that waits for the user at a pinentry ends with the bridge, and so does its
// client.
func TestCloseEndsSessions(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{})
	idle, err := dialAgent(h.socket)
	require.NoError(t, err)
	defer idle.Close()
	u.close(t)
	require.ErrorIs(t, idle.expect("never"), io.EOF)
	require.Empty(t, u.server.Sessions())
	require.NoFileExists(t, h.socket)
}

func TestCutConnectionEndsSessions(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	protected, err := alice.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Bob <bob@example.org>", Passphrase: "secret"})
	require.NoError(t, err)
	require.NoError(t, alice.SetPinentry(gpghome.PinentryNever()))
	over := connect(t, h.config)
	u := start(t, over, alice.local(), Options{})
	u.requireVerified(t)

	var idle []*client
	for range 10 {
		c, err := dialAgent(h.socket)
		require.NoError(t, err)
		defer c.Close()
		idle = append(idle, c)
	}
	signing := make(chan error, 1)
	go func() {
		_, _, err := h.Gpg(t.Context(), strings.NewReader("hello\n"), "--no-autostart", "-u", protected.Fingerprint, "--detach-sign", "-o", "-")
		signing <- err
	}()
	_, err = alice.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)

	h.cable.cut()
	for _, c := range idle {
		require.ErrorIs(t, c.expect("never"), io.EOF)
	}
	require.Error(t, <-signing)
	require.Error(t, over.Wait())
	eventually(t, func() bool { return len(u.server.Sessions()) == 0 })
	u.close(t)
	require.Empty(t, u.all())
}

func TestCloseOnADeadLinkKeepsItsTime(t *testing.T) {
	t.Parallel()
	for _, timing := range []timing{defaultTiming(), quick} {
		alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
		u := start(t, connect(t, h.config), alice.local(), Options{timing: timing})
		u.requireVerified(t)
		c, err := dialAgent(h.socket)
		require.NoError(t, err)
		defer c.Close()
		h.cable.die()
		defer h.cable.cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		closed := make(chan error, 1)
		go func() { closed <- u.Close(ctx) }()
		select {
		case err := <-closed:
			require.ErrorIs(t, err, context.DeadlineExceeded)
		case <-time.After(within):
			require.Fail(t, "it does not return")
		}
	}
}

// A dead link is not taken for a lost path, not even if the path could still be opened.
func TestDeadLinkIsNoLoss(t *testing.T) {
	for name, wait := range map[string]bool{"at once": false, "behind an open": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
			over := connect(t, h.config)
			silent := filepath.Join(h.Dir(), "silent")
			listener, err := net.Listen("unix", silent)
			require.NoError(t, err)
			defer listener.Close()
			over.insteadOfDial = func(nth int) (string, func()) {
				if nth == 2 && wait {
					return silent, h.cable.die
				}
				return "", nil
			}
			u := start(t, over, alice.local(), Options{timing: quick})
			u.requireVerified(t)
			if !wait {
				h.cable.die()
			}
			defer h.cable.cut()
			require.ErrorIs(t, u.wait(t, 1)[0], errUnanswered)
			require.ErrorIs(t, u.Verified(t.Context()), errUnanswered)
			require.Equal(t, 1, over.seen(&over.forwards))
		})
	}
}

// BenchmarkClose measures how many round trips the user waits for at the end.
func BenchmarkClose(b *testing.B) {
	const roundTrip = 200 * time.Millisecond
	alice, h := newLaptop(b), newHost(b, &fakesshd.Server{})
	for b.Loop() {
		b.StopTimer()
		h.cable.slow(0)
		u := start(b, connect(b, h.config), alice.local(), Options{})
		u.requireVerified(b)
		h.cable.slow(roundTrip / 2)
		b.StartTimer()
		u.close(b)
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/roundTrip.Seconds(), "roundtrips/op")
}
