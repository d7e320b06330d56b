package login

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
)

// The methods that ask the user: password (RFC 4252, 8) and
// keyboard-interactive (RFC 4256).

// mayAsk reports whether a method that asks may make another attempt
// (NumberOfPasswordPrompts).
func (l *Login) mayAsk(attempts int) bool {
	if l.Asker == nil {
		l.unasked = true
		return false
	}
	return attempts < l.Config.NumberOfPasswordPrompts
}

// passwordAttempts is the state of the method password.
type passwordAttempts struct {
	count   int
	current *passwordAttempt
}

// passwordAttempt is one password and the server's answer to it.
type passwordAttempt struct{ sent, refused bool }

// keyboardAttempts is the state of the method keyboard-interactive.
type keyboardAttempts struct {
	count int
	asked bool // the server has asked something
	said  int  // bytes that it has said
}

// errRefused ends an attempt whose password was refused.
var errRefused = errors.New("password refused")

// nextPassword asks for a password and sends it.
//
// x/crypto does not tell AuthCallback how an attempt ended. It does call a
// RetryableAuthMethod a second time if the answer was "failure", and only then, and
// stops at once if the method returns an error. So if an attempt is over without a
// second call and without success, the answer was something else, which can only be a
// request to change the password (SSH_MSG_USERAUTH_PASSWD_CHANGEREQ, RFC 4252, 8).
func (l *Login) nextPassword() ssh.AuthMethod {
	if p := l.password.current; p != nil && p.sent && !p.refused && l.aborted == nil {
		l.aborted = ErrPasswordExpired
		return nil
	}
	if !l.mayAsk(l.password.count) {
		return nil
	}
	l.password.count++
	if l.password.count > 1 {
		l.Asker.Notice(usertext.Error, "Permission denied, please try again.")
	} else {
		l.tried = append(l.tried, methodPassword)
	}
	attempt := &passwordAttempt{}
	l.password.current = attempt
	return ssh.RetryableAuthMethod(ssh.PasswordCallback(func() (string, error) {
		if attempt.sent {
			attempt.refused = true
			return "", errRefused
		}
		secret, err := l.askSecret(usertext.Line(fmt.Sprintf("%s@%s's password: ", l.Config.User, l.Config.DisplayName())))
		attempt.sent = err == nil
		defer clear(secret)
		return string(secret), err
	}), 2)
}

// askSecret asks for a secret. If that fails, the log-in is over.
func (l *Login) askSecret(prompt string) ([]byte, error) {
	secret, err := l.Asker.AskSecret(l.ctx, prompt)
	if err != nil {
		l.aborted = err
	}
	return secret, err
}

// nextKeyboard lets the server ask the user.
func (l *Login) nextKeyboard() ssh.AuthMethod {
	if l.keyboard.count > 0 && !l.keyboard.asked { // the server has nothing to ask
		return nil
	}
	if !l.mayAsk(l.keyboard.count) {
		return nil
	}
	l.keyboard.count++
	if l.keyboard.count == 1 {
		l.tried = append(l.tried, methodKeyboard)
	}
	rounds := 0
	return ssh.KeyboardInteractive(func(name, instruction string, questions []string, echos []bool) ([]string, error) {
		l.keyboard.asked = true
		l.keyboard.said += len(name) + len(instruction) + len(strings.Join(questions, ""))
		if rounds++; rounds > maxKeyboardRounds || len(questions) > maxQuestions || l.keyboard.said > MaxBanner {
			return nil, errors.New("the server asks too much")
		}
		return l.answer(name, instruction, questions, echos)
	})
}

// answer shows what the server says and asks the user its questions, each marked with the
// server's name, as ssh does.
func (l *Login) answer(name, instruction string, questions []string, echos []bool) ([]string, error) {
	for _, text := range []string{name, instruction} {
		if text != "" {
			l.Asker.Notice(usertext.Info, usertext.Printable(text))
		}
	}
	answers := make([]string, len(questions))
	for i, question := range questions {
		prompt := usertext.Printable(fmt.Sprintf("(%s@%s) %s", l.Config.User, l.Config.DisplayName(), question))
		if echos[i] {
			answer, err := l.Asker.Ask(l.ctx, prompt)
			if err != nil {
				l.aborted = err
				return nil, err
			}
			answers[i] = answer
			continue
		}
		secret, err := l.askSecret(prompt)
		if err != nil {
			return nil, err
		}
		answers[i] = string(secret)
		clear(secret)
	}
	return answers, nil
}

// MaxBanner is how much a server may have us show before it has let the user in, in bytes:
// so much in banners, and so much in questions.
const MaxBanner = 64 << 10
