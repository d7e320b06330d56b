//go:build unix

package mux

import (
	"syscall"
	"testing"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/linktest"
	"gpg-bridge/internal/testkit/sshd"
)

func TestLink(t *testing.T) {
	t.Parallel()
	server := sshd.Start(t, sshd.Config{})
	linktest.Run(t, func(t *testing.T) (link.Link, func()) {
		s := share(t, server)
		return s.open(t), func() { s.kill(syscall.SIGKILL) }
	})
}
