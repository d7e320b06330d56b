//go:build unix

package bridge

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/remoteside/prepare"
)

// startOn starts a bridge over a link with which the test interferes.
func startOn(t *testing.T, over link.Link, local *Local, options Options) *up {
	t.Helper()
	u := &up{}
	options.Warn, options.Log = u.add, quiet
	var err error
	u.Bridge, err = Start(t.Context(), over, local, local.Check(t.Context()), options)
	require.NoError(t, err)
	u.endWith(t)
	return u
}

// stuck is a link whose host does not answer a request to forward while it is mute.
type stuck struct {
	*tap
	mute atomic.Bool
}

func (l *stuck) Forward(ctx context.Context, path string, serve func(context.Context, link.Conn)) (link.Forward, error) {
	if l.mute.Load() {
		l.count(&l.forwards)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return l.tap.Forward(ctx, path, serve)
}

// If the host does not answer when the path is to be taken back, that is tried again. Health
// has the loss before that, and the user is told after it.
func TestRetakeThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	over := &stuck{tap: connect(t, h.config)}
	bounded := quick
	bounded.retake = 3 * time.Second
	var changes atomic.Int32
	u := startOn(t, over, alice.local(), Options{timing: bounded, Changed: func() { changes.Add(1) }})
	u.requireVerified(t)
	over.mute.Store(true)
	gone(t, h)
	eventually(t, func() bool { return over.seen(&over.forwards) == 2 })
	what, why := u.Health()
	require.Equal(t, Taken, what)
	require.ErrorIs(t, why, errRetaking)
	require.NotZero(t, changes.Load())
	require.Empty(t, u.all(), "it may yet be taken back")

	require.ErrorIs(t, u.wait(t, 1)[0], errNotRetaken)
	eventually(t, func() bool { return over.seen(&over.forwards) == 3 })
	require.Equal(t, Taken, u.hindrance())
	over.mute.Store(false)
	require.ErrorIs(t, u.wait(t, 2)[1], errRetaken)
	eventually(t, func() bool { return u.hindrance() == None })
	require.NoError(t, h.sign(t, alice))
}

// flipping is a link whose host answers only every other look.
type flipping struct {
	*tap
	nth atomic.Int32
}

func (l *flipping) DialUnix(ctx context.Context, path string) (link.Conn, error) {
	if l.nth.Add(1)%2 == 0 {
		return nil, link.ErrUnanswered
	}
	return l.tap.DialUnix(ctx, path)
}

// The user is told once of a host that answers only now and then, and again only after a long
// time without trouble.
func TestSilenceThatComesAndGoesIsToldOnce(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	for name, calm := range map[string]time.Duration{"never calm": time.Hour, "calm": time.Nanosecond} {
		over := &flipping{tap: connect(t, h.config)}
		timing := quick
		timing.calm = calm
		u := startOn(t, over, alice.local(), Options{timing: timing})
		eventually(t, func() bool { return over.nth.Load() > 20 })
		told := u.all()
		require.NotEmpty(t, told, name)
		require.ErrorIs(t, told[0], errUnanswered)
		require.Equal(t, calm == time.Hour, len(told) == 1, name)
		u.close(t)
	}
}

// TestPathNewsAreRare: what the user is told of a path that is lost and silent, and well in
// between. l: it is lost, and not taken back; t: it is taken back; s: the host is silent; w: it
// is well; a blank: nothing happens for longer than timing.calm.
func TestPathNewsAreRare(t *testing.T) {
	for happens, told := range map[string]string{
		"lll":         "l",
		"ltwltw":      "lt",
		"twtw":        "t",
		"twlt":        "tlt", // the end of a loss that was told
		"llwlt":       "lt",
		"twllwlt":     "tl", // well without having been taken back
		"swswss":      "s",
		"swltwsltw":   "slt",
		"sw sw":       "ss",
		"s s":         "s", // it is no news
		"l lt":        "lt",
		"ltw lttwlt":  "ltlt",
		"tw tw":       "tt",
		"swlt ltwsws": "sltlts",
	} {
		synctest.Test(t, func(t *testing.T) {
			var got strings.Builder
			b := &Bridge{options: Options{timing: timing{calm: time.Hour}, Warn: func(err error) {
				got.WriteString(map[error]string{errGone: "l", errRetaken: "t", errUnanswered: "s"}[err])
			}}}
			for _, what := range happens {
				time.Sleep(time.Minute)
				switch what {
				case 'l':
					b.noteLossBegins()
					b.noteLoss(errGone)
				case 't':
					b.noteLossBegins()
					b.noteLoss(nil)
				case 's':
					b.notePath(errUnanswered)
				case 'w':
					b.notePath(nil)
				case ' ':
					time.Sleep(time.Hour)
				}
			}
			require.Equal(t, told, got.String(), happens)
		})
	}
}

// hanging is a link to a host on which no command ends while it hangs.
type hanging struct {
	*tap
	hangs atomic.Bool
}

func (l *hanging) Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error {
	err := l.tap.Run(ctx, command, stdin, stdout, stderr)
	if err == nil && l.hangs.Load() {
		<-ctx.Done()
	}
	return err
}

// An import that a preparation has left running ends when the path is lost again.
func TestRetakesLeaveNothing(t *testing.T) {
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	over := &hanging{tap: connect(t, h.config)}
	over.hangs.Store(true)
	u := startOn(t, over, alice.local(), Options{timing: quick})
	u.requireVerified(t)
	for nth := range 2 {
		gone(t, h)
		eventually(t, func() bool { return over.seen(&over.forwards) == nth+2 })
		eventually(t, func() bool { return u.hindrance() == None })
	}
	stacks := make([]byte, 1<<20)
	eventually(t, func() bool {
		waiting := strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "prepare.(*Preparation).Wait(")
		return waiting <= 1
	})
	over.hangs.Store(false)
	u.close(t)
}

// hungHost is a link to a host whose shell runs the preparation but never reports.
type hungHost struct{ link.Link }

var markForm = regexp.MustCompile(`gpg-bridge:[0-9a-f]{16}`)

func (hungHost) Run(ctx context.Context, command string, _ io.Reader, stdout, _ io.Writer) error {
	_, _ = fmt.Fprintf(stdout, "\n%s start\n", markForm.FindString(command))
	<-ctx.Done()
	return context.Cause(ctx)
}

// If something hangs on the host when the path is to be taken back, it is named, as at the
// start.
func TestRetakeNamesWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Bridge{
			link: hungHost{}, local: noAgent(), imports: newImports(t.Context()),
			options: Options{timing: defaultTiming(), Log: quiet},
		}
		b.requested = func() {}
		err := b.takePath(t.Context(), errTaken)
		var hung *prepare.HungError
		require.ErrorAs(t, err, &hung)
		require.Equal(t, "gpgconf", hung.Program)
		b.imports.end()
	})
}

// If another connection has the second path when the bridge starts, the path is served when
// that has ended. Until then no agent is started, and the user is told once.
func TestSecondPathThatIsHeldIsServedLater(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	second := &host{Home: gpghome.ForTest(t)}
	var err error
	second.socket, err = second.AgentSocket(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.ImportPublic(t.Context(), alice.Home))
	require.NoError(t, second.ImportPublic(t.Context(), alice.Home))
	release := greeter(t, second.socket)
	over := connect(t, h.config)
	var hindered warnings
	served := make(chan string, 1)
	u := start(t, over, alice.local(), Options{timing: quick, Login: &LoginShell{
		Known:  func() (string, error, bool) { return second.Dir(), nil, true },
		Served: func(path string) { served <- path }, Failed: hindered.add,
	}})
	u.requireVerified(t)
	var held *prepare.HeldError
	require.ErrorAs(t, hindered.wait(t, 1)[0], &held)
	require.Equal(t, second.socket, held.Socket)
	require.NoError(t, alice.StopAgent(t.Context()))
	runs := over.seen(&over.runs)
	eventually(t, func() bool { return over.seen(&over.runs) >= runs+3 })
	_, err = alice.AgentPID(t.Context())
	require.Error(t, err, "the agent was started")
	require.Empty(t, served)
	release()
	require.Equal(t, second.socket, <-served)
	require.NoError(t, second.sign(t, alice))
	require.Len(t, hindered.all(), 1)
}

// The second path of a host is verified, too, and Health has what is wrong with either.
func TestSecondPathIsLookedAfter(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	second := &host{Home: gpghome.ForTest(t)}
	var err error
	second.socket, err = second.AgentSocket(t.Context())
	require.NoError(t, err)
	rare := quick
	rare.interval, rare.pause = time.Hour, time.Hour
	over := connect(t, h.config)
	var hindered warnings
	u := start(t, over, alice.local(), Options{timing: rare, Login: &LoginShell{
		Known:  func() (string, error, bool) { return second.Dir(), nil, true },
		Served: func(string) {}, Failed: hindered.add,
	}})
	u.requireVerified(t)
	<-u.login.ended
	require.NotNil(t, u.login.up())
	require.NoError(t, u.login.up().Verified(t.Context()))
	require.Equal(t, second.socket, u.login.up().Path())
	require.Equal(t, None, u.hindrance())

	ownAgent(t, second)
	u.Look()
	require.ErrorIs(t, hindered.wait(t, 1)[0], errRetaken)
	require.NoError(t, second.sign(t, alice))
	ownAgent(t, second)
	u.Look()
	hindered.wait(t, 2)
	what, why := u.Health()
	require.Equal(t, Taken, what)
	require.ErrorContains(t, why, "for the gpg of a login shell: the host's own agent")
	require.NoError(t, h.sign(t, alice), "the first path is well")
}
