package serve

import (
	"context"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/memory"
	"gpg-bridge/internal/ui"
	"gpg-bridge/sshfwd"
)

// A Connection is the link a bridge runs over. If it is our own, a session runs over it, too.
type Connection struct {
	link.Link
	Client *sshfwd.Client // the same; nil over the connection of another process
}

// Dial logs in to the target as the user's ssh would, and asks the user what that would ask.
func (s *Service) Dial(ctx context.Context) (Connection, error) {
	client, err := sshfwd.Dial(ctx, s.Target.Config, sshfwd.DialOptions{
		Prompter: ui.NewPrompter(s.UI), Log: s.Log, StateDir: memory.Dir(), Stderr: s.UI.Stderr, TokenAsked: s.Token.asked,
	})
	s.Token.dialed(err)
	if err != nil {
		return Connection{}, err
	}
	s.Log.Debug("authenticated")
	return Connection{client, client}, nil
}
