//go:build unix

package compat_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/release"
	"gpg-bridge/remoteside"
	"gpg-bridge/remoteside/compat"
)

// newerAgent starts an agent of another release whose keys are those of home,
// with more files that only look like keys.
func newerAgent(t *testing.T, suite string, home *gpghome.Home, more int) *gpghome.Home {
	t.Helper()
	newer := gpghome.ForTestWith(t, release.GnuPG(t, suite))
	keys := filepath.Join(newer.Dir(), "private-keys-v1.d")
	require.NoError(t, os.CopyFS(keys, os.DirFS(filepath.Join(home.Dir(), "private-keys-v1.d"))))
	require.NoError(t, os.Chmod(keys, 0o700))
	for range more {
		grip := make([]byte, 20)
		_, err := rand.Read(grip)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(keys, fmt.Sprintf("%X.key", grip)), nil, 0o600))
	}
	require.NoError(t, newer.StartAgent(t.Context()))
	return newer
}

// asked returns all that an agent answers to a command on one of its sockets.
func asked(t *testing.T, home *gpghome.Home, socket, command string) string {
	t.Helper()
	path, err := home.Socket(t.Context(), socket)
	require.NoError(t, err)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	in := bufio.NewReader(conn)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	_, err = conn.Write([]byte(command))
	require.NoError(t, err)
	return response(t, func() ([]byte, error) { return in.ReadBytes('\n') })
}

// response reads lines up to the one that ends a response.
func response(t *testing.T, readLine func() ([]byte, error)) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := readLine()
		require.NoError(t, err, "after %q", all.String())
		all.Write(line)
		if assuan.KindOf(line).Final() {
			return all.String()
		}
	}
}

// mended returns what the client gets for a command.
func mended(t *testing.T, agent remoteside.Agent, command string) string {
	t.Helper()
	require.NoError(t, agent.WriteLine([]byte(command)))
	return response(t, func() ([]byte, error) {
		line, _, err := agent.ReadLine()
		return line, err
	})
}

// TestKeyinfoIsTheNewerAgents: byte for byte, the answers are those of a
// newer agent that has the same keys.
func TestKeyinfoIsTheNewerAgents(t *testing.T) {
	home := gpghome.ForTest(t)
	protected, err := home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Alice <alice@example.org>", Passphrase: "secret"})
	require.NoError(t, err)
	clear, err := home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Bob <bob@example.org>"})
	require.NoError(t, err)
	socket, err := home.ExtraSocket(t.Context())
	require.NoError(t, err)
	local := &agentside.Agent{Locator: &agentside.Locator{AgentSocket: socket}}
	session, err := local.Connect(t.Context())
	require.NoError(t, err)
	if got := mended(t, session, "KEYINFO "+clear.Keygrip+"\n"); got != assuan.ErrForbidden {
		t.Skipf("this machine's agent needs no repair: %q", got)
	}
	older := compat.New(t.Context(), session, nil)
	defer older.Close()
	for _, suite := range release.Suites() {
		newer := newerAgent(t, suite, home, 0)
		for _, command := range []string{
			"KEYINFO " + protected.Keygrip + "\n",
			"KEYINFO " + protected.SubKeygrip + "\n",
			"keyinfo\t" + strings.ToLower(protected.Keygrip) + " \n",
			"KEYINFO " + strings.Repeat("0", 40) + "\n",
		} {
			require.Equal(t, asked(t, newer, "agent-extra-socket", command), mended(t, older, command), "%s: %q", suite, command)
		}
		// What HAVEKEY does not tell: this key is in the clear.
		command := "KEYINFO " + clear.Keygrip + "\n"
		want := asked(t, newer, "agent-extra-socket", command)
		require.Equal(t, strings.Replace(want, " C ", " P ", 1), mended(t, older, command), suite)
	}
}

// unlisting is an agent that has every key and lists none.
type unlisting struct{ answer string }

func (a *unlisting) Greeting() []byte { return []byte("OK\n") }
func (a *unlisting) Close() error     { return nil }

func (a *unlisting) WriteLine(line []byte) error {
	a.answer = "OK\n"
	if bytes.Contains(line, []byte("--list")) {
		a.answer = assuan.ErrForbidden
	}
	return nil
}

func (a *unlisting) ReadLine() ([]byte, bool, error) { return []byte(a.answer), false, nil }

// TestListIsTheNewerAgents: the same for the list, which an agent gives on
// its main socket only; of so many keys that lines are cut and bytes escaped.
func TestListIsTheNewerAgents(t *testing.T) {
	for _, suite := range release.Suites() {
		home := gpghome.ForTest(t)
		_, err := home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Alice <alice@example.org>"})
		require.NoError(t, err)
		newer := newerAgent(t, suite, home, 300)
		list := asked(t, newer, "agent-socket", "HAVEKEY --list=1000\n")
		grips := gripsOf(t, list)
		require.Len(t, grips, 302)
		agent := compat.New(t.Context(), &unlisting{}, func(context.Context) ([]string, error) { return grips, nil })
		defer agent.Close()
		for _, command := range []string{"HAVEKEY --list=1000\n", "HAVEKEY --list\n", "HAVEKEY --list=302\n", "HAVEKEY --list=301\n", "HAVEKEY --list=3\n"} {
			require.Equal(t, asked(t, newer, "agent-socket", command), mended(t, agent, command), "%s: %q", suite, command)
		}
		require.Equal(t, assuan.ErrForbidden, asked(t, newer, "agent-extra-socket", "HAVEKEY --list=1000\n"))
	}
}

// gripsOf decodes the D lines of a list.
func gripsOf(t *testing.T, list string) []string {
	t.Helper()
	var data []byte
	for line := range strings.Lines(list) {
		text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "D ")
		for ok && len(text) > 0 {
			n := 1
			if text[0] == '%' {
				n = 3
				escaped, err := hex.DecodeString(text[1:3])
				require.NoError(t, err)
				data = append(data, escaped...)
			} else {
				data = append(data, text[0])
			}
			text = text[n:]
		}
	}
	var grips []string
	for ; len(data) >= 20; data = data[20:] {
		grips = append(grips, fmt.Sprintf("%X", data[:20]))
	}
	require.Empty(t, data)
	return grips
}
