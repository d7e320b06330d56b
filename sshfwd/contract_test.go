package sshfwd

import (
	"testing"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/linktest"
	"gpg-bridge/internal/testkit/sshd"
)

func TestClientIsALink(t *testing.T) {
	t.Parallel()
	linktest.Run(t, func(t *testing.T) (link.Link, func()) {
		srv := sshd.Start(t, sshd.Config{})
		return loginTo(t, srv), srv.KillSessions
	})
}
