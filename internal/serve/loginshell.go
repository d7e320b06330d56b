package serve

import (
	"errors"
	"fmt"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/memory"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/remoteside/prepare"
)

// loginEvery is how often a login shell is asked where its gpg looks, and how often
// the user of a session is told of it.
const loginEvery = 30 * 24 * time.Hour

// Suffixes of a target's ID, for the marks of what is said once in loginEvery.
const (
	loginServedMark = "01"
	loginLateMark   = "02"
	loginFailedMark = "03"
	noKeyMark       = "04"
)

// loginLate is remembered instead of a home if the login shell takes too long to answer.
const loginLate = "-"

// loginShell tells the bridge what to do about the login shell's gpg. With --takeover the
// shell is asked again, but only once in a process, not at every connection.
func (s *Service) loginShell(a Attempt) *bridge.LoginShell {
	remembered, account := memory.NewLogins(memory.Dir(), s.Log), ""
	if client := a.Connection.Client; client != nil {
		account = client.Account()
	}
	return &bridge.LoginShell{
		Known: func() (string, error, bool) {
			answer, at := remembered.Answer(account)
			switch {
			case s.Target.Spec.Takeover && !s.loginAsked.Load():
			case at.IsZero() || time.Since(at).Abs() >= loginEvery:
			case answer == loginLate:
				return "", &prepare.LoginTimeoutError{}, true
			case answer == "" || prepare.IsHome(answer):
				return answer, nil, true
			}
			return "", nil, false
		},
		Answered: func(home string, why error) {
			if _, late := errors.AsType[*prepare.LoginTimeoutError](why); late {
				home = loginLate
			}
			s.loginAsked.Store(true)
			remembered.SetAnswer(account, home, time.Now())
		},
		Served: s.tellLogin,
		Failed: func(err error) { s.loginFailed(a, err) },
	}
}

// tellLogin says that the gpg of a login shell looks elsewhere, and is served there, too.
func (s *Service) tellLogin(path string) {
	text := fmt.Sprintf("gpg in a login shell on %s looks at %s (its GNUPGHOME is another one than that of commands); your agent serves both",
		s.Target.Spec.Host, usertext.Printable(path))
	s.Log.Info(text)
	if s.tellsOfLogin(loginServedMark) {
		s.UI.Tell(text)
	}
}

// loginFailed tells the user why the gpg of a login shell cannot be served, and notes it in
// the status.
func (s *Service) loginFailed(a Attempt, err error) {
	mark := loginFailedMark
	s.Status.Problem(err)
	s.Log.Info(err.Error())
	if _, late := errors.AsType[*prepare.LoginTimeoutError](err); late {
		mark = loginLateMark
	}
	if s.tellsOfLogin(mark) {
		a.Warn(err)
	}
}

// tellsOfLogin reports whether to tell the user. In a session it may have been said before.
func (s *Service) tellsOfLogin(mark string) bool { return !s.Session || s.tellsOnce(mark) }

// tellsOnce reports whether the user was not told within the last loginEvery.
func (s *Service) tellsOnce(mark string) bool {
	dir, err := share.Open()
	if err != nil {
		return false
	}
	defer dir.Close()
	return dir.Claim(s.Target.ID+mark, loginEvery)
}
