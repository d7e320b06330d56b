package bridge

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/pinentry"
)

// A strayScene has one prompt on terminal 1 and counts the looks.
type strayScene struct {
	strays                 *strayPrompts
	opened, readers, ended atomic.Int32
	sshAt, device          atomic.Uint64 // 0: there is none, or it has none open
	pending                atomic.Bool
}

func setStrays(t *testing.T) *strayScene {
	var s strayScene
	s.pending.Store(true)
	s.device.Store(1)
	s.strays = &strayPrompts{
		identify: func(context.Context) (pinentry.Agent, error) { return pinentry.Agent{}, nil },
		pending:  s.pending.Load,
		open: func(pinentry.Agent) ([]pinentry.Process, error) {
			s.opened.Add(1)
			return []pinentry.Process{{PID: 1 << 30, Devices: []uint64{s.device.Load()}}}, nil
		},
		readers: func() ([]pinentry.Reader, error) {
			s.readers.Add(1)
			if at := s.sshAt.Load(); at != 0 {
				return []pinentry.Reader{{PID: 1 << 30, Name: "ssh", Terminal: at}}, nil
			}
			return nil, nil
		},
		ended: func(*PromptError) { s.ended.Add(1); s.pending.Store(false) },
		log:   slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.strays.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	s.strays.began()
	return &s
}

// Looks at a prompt that stays open get rare, and frequent again when a use begins or the
// prompt opens another terminal.
func TestStrayLooksGetRarer(t *testing.T) {
	for _, ssh := range []uint64{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			s := setStrays(t)
			s.sshAt.Store(ssh)
			looks := func(d time.Duration) (int32, int32) {
				opened, readers := s.opened.Load(), s.readers.Load()
				time.Sleep(d)
				return s.opened.Load() - opened, s.readers.Load() - readers
			}
			opened, _ := looks(2 * time.Second)
			require.InDelta(t, 80, opened, 3)
			opened, readers := looks(58 * time.Second)
			require.InDelta(t, 32+50, readers, 4)
			if ssh == 0 {
				require.LessOrEqual(t, opened, int32(2), "nobody reads")
			} else {
				require.InDelta(t, 32+50, opened, 4)
			}
			s.strays.began()
			opened, _ = looks(time.Second)
			require.InDelta(t, 40, opened, 3, "another use")
			looks(20 * time.Second)
			if ssh != 0 {
				s.device.Store(3)
				opened, _ = looks(2 * time.Second)
				require.Greater(t, opened, int32(30), "the prompt has changed")
			}
		})
	}
}

// Uses that begin one after the other do not put the look off.
func TestStrayLookIsNotPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setStrays(t)
		for range 1000 {
			time.Sleep(time.Millisecond)
			s.strays.began()
		}
		require.InDelta(t, 40, s.opened.Load(), 3)
	})
}

// An ssh that comes to a prompt is noticed at any time.
func TestStrayPromptIsNoticed(t *testing.T) {
	for after, within := range map[time.Duration]time.Duration{
		0: 30 * time.Millisecond, time.Second: 300 * time.Millisecond, 5 * time.Second: 300 * time.Millisecond,
		time.Hour: 1100 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := setStrays(t)
			time.Sleep(after)
			require.Zero(t, s.ended.Load())
			s.sshAt.Store(1)
			time.Sleep(within)
			require.Equal(t, int32(1), s.ended.Load(), after)
		})
	}
}
