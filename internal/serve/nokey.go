package serve

import (
	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/usertext"
)

// errNoSecretKey is for a user whose gpg has no secret key to sign or decrypt with.
var errNoSecretKey = usertext.WithHint(
	"you have no secret key here, so gpg on the host has none either",
	"make one with gpg --quick-generate-key, or import yours; with a smart card, run gpg --card-status once",
)

// tellNoKey warns once for each target that there is no key to use there. It does not for an
// agent that is not gpg's own, whose keys gpg may not know.
func (s *Service) tellNoKey(found bridge.Finding) {
	if found.NoSecretKey && s.Target.Spec.AgentSocket == "" && s.tellsOnce(noKeyMark) {
		s.UI.Warn(errNoSecretKey)
	}
}
