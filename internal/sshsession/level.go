package sshsession

import "gpg-bridge/internal/usertext"

// changeLevel is ~v and ~V. It returns the new level's name.
func (r *run) changeLevel(more bool) string {
	level := r.service.UI.Level()
	if more {
		level = min(level+1, usertext.Debug3)
	} else {
		level = max(level-1, usertext.Quiet)
	}
	r.service.UI.SetLevel(level)
	return level.String()
}
