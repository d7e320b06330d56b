package remoteside

import (
	"bufio"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/fakeagent"
)

const grip = "0123456789ABCDEF0123456789abcdef01234567"

// witnessed is what a server told of one session.
type witnessed struct {
	NopObserver
	mu         sync.Mutex
	began      []uuid.UUID
	beginnings []Operation
	operations []Operation
	left       chan struct{} // closed by Leaving
}

func newWitness() *witnessed { return &witnessed{left: make(chan struct{})} }

func (w *witnessed) Leaving(Operation) { close(w.left) }

func (w *witnessed) Began(session uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = append(w.began, session)
}

func (w *witnessed) Operating(o Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beginnings = append(w.beginnings, o)
}

func (w *witnessed) Operated(o Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operations = append(w.operations, o)
}

// play plays a conversation, "C: " what the client says and "A: " what the
// agent answers, and lets the client leave.
func play(t *testing.T, conversation string) (*witnessed, Report) {
	t.Helper()
	w, second, agent := newWitness(), newWitness(), fakeagent.New()
	client, reports := serve(t, t.Context(), Config{Connect: connectTo(agent), Observers: []Observer{w, second}})
	in := bufio.NewReader(client)
	_, err := in.ReadString('\n')
	require.NoError(t, err)
	unanswered := false
	for line := range strings.Lines(conversation) {
		who, text, _ := strings.Cut(line, ": ")
		unanswered = who == "C"
		switch who {
		case "C":
			fakeagent.Send(t, client, text)
			require.Equal(t, text, <-agent.Heard)
		case "A":
			agent.Say <- text
			got, err := in.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, text, got)
		}
	}
	require.NoError(t, client.Close())
	if unanswered {
		<-w.left // before the agent goes too
		<-second.left
	}
	close(agent.Gone)
	report := <-reports
	w.left, second.left = nil, nil
	require.Equal(t, w, second, "each observer is told the same")
	return w, report
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
		{"two keygrips, of which the agent takes the first", "C: SIGKEY " + grip + " " + strings.Repeat("1", 40) + "\nA: OK\nC: PKSIGN\nA: OK\n",
			[]Operation{{Verb: "PKSIGN", Keygrip: grip}}},
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
			require.Equal(t, []uuid.UUID{report.ID}, w.began)
			for i := range w.operations {
				o := &w.operations[i]
				begun := w.beginnings[i]
				require.WithinDuration(t, o.At.Add(-o.Duration), begun.At, time.Millisecond)
				require.Equal(t, Operation{Session: report.ID, Verb: o.Verb, Keygrip: o.Keygrip, At: begun.At}, begun)
				require.Equal(t, report.ID, o.Session)
				require.WithinRange(t, o.At, start, time.Now())
				require.GreaterOrEqual(t, o.Duration, time.Duration(0))
				require.Less(t, o.Duration, time.Since(start))
				require.WithinRange(t, o.Asked, begun.At, o.At)
				require.Equal(t, o.Unanswered, o.Left)
				o.Session, o.At, o.Duration, o.Asked, o.Left = uuid.UUID{}, time.Time{}, 0, time.Time{}, false
			}
			require.Equal(t, test.want, w.operations)
			require.Len(t, w.beginnings, len(w.operations), "each that began has ended")
		})
	}
}

// TestLooksAreNoSessions: what verifies the path gives no command, and who asks whose it
// is does not use the agent.
func TestLooksAreNoSessions(t *testing.T) {
	for _, conversation := range []string{"", "C: GETINFO restricted\nA: OK\n", "C: GETINFO restricted\nA: OK\nC: BYE\nA: OK\n"} {
		w, report := play(t, conversation)
		require.False(t, report.Began)
		require.Empty(t, w.began)
	}
	w, report := play(t, "C: GETINFO restricted\nA: OK\nC: GETINFO version\nA: OK\n")
	require.True(t, report.Began)
	require.Equal(t, []uuid.UUID{report.ID}, w.began)
	require.Empty(t, w.operations)
}

// unasked is told of no end.
type unasked struct {
	NopObserver
	t *testing.T
}

func (u unasked) Operated(Operation) { u.t.Error("told") }

// TestOperationsCostNothingElse: no line but an operation's answer allocates.
func TestOperationsCostNothingElse(t *testing.T) {
	o := operations{observers: []Observer{unasked{t: t}}}
	lines := [][]byte{
		[]byte("SIGKEY " + grip + "\n"), []byte("SETKEY --another " + grip + "\n"), []byte("SETHASH 8 00\n"), []byte("RESET\n"),
		[]byte("PKSIGN\n"), []byte("READKEY x\n"), []byte("x"), nil,
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, line := range lines {
			o.command(t.Context(), assuan.ParseCommand(line))
		}
	}))
}
