package target

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"gpg-bridge/agentside"
)

// homeTimeout bounds the question to gpgconf, which takes some milliseconds.
const homeTimeout = 500 * time.Millisecond

// A Home is the directory of the local GnuPG, which is part of a target's ID. GNUPGHOME may
// spell it in several ways, or be unset, so gpgconf is asked, once and in the background. A
// gpgconf that hangs delays nobody for longer than homeTimeout.
type Home struct {
	ctx    context.Context // of the question
	cancel context.CancelFunc
	done   chan struct{}
	path   string // set when done is closed; "" if gpgconf did not say
}

// AskHome begins to ask gpgconf. The caller must call Stop.
func AskHome(ctx context.Context) *Home {
	ctx, cancel := context.WithTimeout(ctx, homeTimeout)
	h := &Home{ctx: ctx, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		h.path, _ = new(agentside.Locator).HomeDir(ctx)
	}()
	return h
}

// Name returns gpgconf's answer, or without one what it would be if gpgconf had no configuration
// of its own.
func (h *Home) Name() string {
	path := ""
	select {
	case <-h.done:
		path = h.path
	case <-h.ctx.Done(): // done may come later: a child of gpgconf's may keep its output open
	}
	if path == "" {
		path = usualHome()
	}
	return filepath.Clean(path)
}

// Stop ends the question, and returns when it has ended.
func (h *Home) Stop() {
	h.cancel()
	<-h.done
}

// usualHome returns what gpgconf says if only the environment counts (GnuPG,
// common/homedir.c, default_homedir).
func usualHome() string {
	if home := os.Getenv("GNUPGHOME"); home != "" {
		return AbsolutePath(home)
	}
	if dir, err := os.UserConfigDir(); err == nil && runtime.GOOS == "windows" {
		return filepath.Join(dir, "gnupg")
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".gnupg")
}
