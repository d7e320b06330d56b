package remoteside

import (
	"bufio"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const grip = "0123456789ABCDEF0123456789abcdef01234567"

// witnessed is what a server told of one session.
type witnessed struct {
	mu         sync.Mutex
	began      int
	operations []Operation
}

func (w *witnessed) config() Config {
	return Config{
		Began: func() { w.mu.Lock(); defer w.mu.Unlock(); w.began++ },
		Operated: func(o Operation) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.operations = append(w.operations, o)
		},
	}
}

// play plays a conversation, "C: " what the client says and "A: " what the
// agent answers, and lets the client leave.
func play(t *testing.T, conversation string) (*witnessed, Report) {
	t.Helper()
	w, agent := new(witnessed), newFakeAgent()
	config := w.config()
	config.Connect = connectTo(agent)
	client, reports := serve(t, t.Context(), config)
	in := bufio.NewReader(client)
	_, err := in.ReadString('\n')
	require.NoError(t, err)
	for line := range strings.Lines(conversation) {
		switch who, text, _ := strings.Cut(line, ": "); who {
		case "C":
			send(t, client, text)
			require.Equal(t, text, <-agent.heard)
		case "A":
			agent.say <- text
			got, err := in.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, text, got)
		}
	}
	require.NoError(t, client.Close())
	close(agent.gone)
	return w, <-reports
}

func TestOperations(t *testing.T) {
	const cancelled = "A: ERR 83886179 Operation cancelled <Pinentry>\n"
	for _, test := range []struct {
		name, conversation string
		want               []Operation
	}{
		{"signature", "C: SIGKEY " + grip + "\nA: OK\nC: SETHASH 8 00\nA: OK\nC: PKSIGN\nA: S x\nA: D x\nA: OK\n",
			[]Operation{{Verb: "PKSIGN", Keygrip: grip}}},
		{"decryption", "C: setkey --another " + grip + " \nA: OK\nC: PkDecrypt\nA: INQUIRE CIPHERTEXT\nC: D x\nC: END\nA: OK\n",
			[]Operation{{Verb: "PKDECRYPT", Keygrip: grip}}},
		{"refused", "C: SIGKEY " + grip + "\nA: OK\nC: PKSIGN --hash=x\n" + cancelled,
			[]Operation{{Verb: "PKSIGN", Keygrip: grip, Code: 83886179, Words: "Operation cancelled <Pinentry>"}}},
		{"error without words", "C: PKSIGN\nA: ERR 17\n", []Operation{{Verb: "PKSIGN", Code: 17}}},
		{"no key", "C: SIGKEY " + grip + "\nA: OK\nC: RESET\nA: OK\nC: PKSIGN\nA: OK\n", []Operation{{Verb: "PKSIGN"}}},
		{"not a keygrip", "C: SIGKEY " + grip[1:] + "\x1b\nA: OK\nC: PKSIGN\nA: OK\n", []Operation{{Verb: "PKSIGN"}}},
		{"unanswered", "C: PKSIGN\n", []Operation{{Verb: "PKSIGN", Unanswered: true}}},
		{"others", "C: PKSIGNATURE\nA: OK\nC: GENKEY\nA: OK\nC: READKEY x\nA: OK\nC: S\nA: OK\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			w, report := play(t, test.conversation)
			require.True(t, report.Began)
			require.Equal(t, 1, w.began)
			for i := range w.operations {
				o := &w.operations[i]
				require.WithinRange(t, o.At, start, time.Now())
				require.GreaterOrEqual(t, o.Duration, time.Duration(0))
				require.Less(t, o.Duration, time.Since(start))
				o.At, o.Duration = time.Time{}, 0
			}
			require.Equal(t, test.want, w.operations)
		})
	}
}

// TestLooksAreNoSessions: what verifies the path gives no command.
func TestLooksAreNoSessions(t *testing.T) {
	w, report := play(t, "")
	require.False(t, report.Began)
	require.Zero(t, w.began)
	require.Empty(t, w.operations)
}

// TestOperationsCostNothingElse: no line but an operation's answer allocates.
func TestOperationsCostNothingElse(t *testing.T) {
	o := operations{tell: func(Operation) { t.Error("told") }}
	lines := [][]byte{
		[]byte("SIGKEY " + grip + "\n"), []byte("SETKEY --another " + grip + "\n"), []byte("SETHASH 8 00\n"), []byte("RESET\n"),
		[]byte("PKSIGN\n"), []byte("READKEY x\n"), []byte("x"), nil,
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, line := range lines {
			o.command(line)
		}
	}))
}
