package sshfwd

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The methods that ask the user: password (RFC 4252, 8) and
// keyboard-interactive (RFC 4256).

// mayAsk says whether another attempt by a method that asks is allowed
// (NumberOfPasswordPrompts).
func (a *authenticator) mayAsk(attempts int) bool {
	if a.prompter == nil {
		a.unasked = true
		return false
	}
	return attempts < a.config.NumberOfPasswordPrompts
}

// passwordAttempt is one password and the server's answer to it.
type passwordAttempt struct{ sent, refused bool }

// errRefused ends an attempt whose password was refused.
var errRefused = errors.New("password refused")

// password asks for a password and sends it.
//
// x/crypto does not tell AuthCallback how an attempt ended. It does try a
// RetryableAuthMethod a second time when the answer was "failure", and only
// then, and stops at once when the callback has an error. So an attempt that is
// over without a second try and without success was answered by something
// else, which can only be a request to change the password
// (SSH_MSG_USERAUTH_PASSWD_CHANGEREQ, RFC 4252, 8).
func (a *authenticator) password() ssh.AuthMethod {
	if p := a.password1; p != nil && p.sent && !p.refused && a.aborted == nil {
		a.aborted = ErrPasswordExpired
		return nil
	}
	if !a.mayAsk(a.passwords) {
		return nil
	}
	a.passwords++
	if a.passwords > 1 {
		a.prompter.Notice("Permission denied, please try again.")
	} else {
		a.tried = append(a.tried, methodPassword)
	}
	attempt := &passwordAttempt{}
	a.password1 = attempt
	return ssh.RetryableAuthMethod(ssh.PasswordCallback(func() (string, error) {
		if attempt.sent {
			attempt.refused = true
			return "", errRefused
		}
		secret, err := a.askSecret(printableLine(fmt.Sprintf("%s@%s's password: ", a.config.User, a.config.displayName())))
		attempt.sent = err == nil
		defer wipe(secret)
		return string(secret), err
	}), 2)
}

// displayName is how ssh calls the host when it asks.
func (c *Config) displayName() string { return cmp.Or(c.HostKeyAlias, c.Hostname) }

// askSecret ends the log-in if the user does not answer.
func (a *authenticator) askSecret(prompt string) ([]byte, error) {
	secret, err := a.prompter.AskSecret(a.ctx, prompt)
	if err != nil {
		a.aborted = err
	}
	return secret, err
}

func (a *authenticator) keyboard() ssh.AuthMethod {
	if a.keyboards > 0 && !a.asked { // the server has nothing to ask
		return nil
	}
	if !a.mayAsk(a.keyboards) {
		return nil
	}
	a.keyboards++
	if a.keyboards == 1 {
		a.tried = append(a.tried, methodKeyboard)
	}
	rounds := 0
	return ssh.KeyboardInteractive(func(name, instruction string, questions []string, echos []bool) ([]string, error) {
		a.asked = true
		a.said += len(name) + len(instruction) + len(strings.Join(questions, ""))
		if rounds++; rounds > maxKeyboardRounds || len(questions) > maxQuestions || a.said > maxBanner {
			return nil, errors.New("the server asks too much")
		}
		return a.answer(name, instruction, questions, echos)
	})
}

// answer shows what the server says and asks its questions, each marked with
// who asks, as ssh does.
func (a *authenticator) answer(name, instruction string, questions []string, echos []bool) ([]string, error) {
	for _, text := range []string{name, instruction} {
		if text != "" {
			a.prompter.Notice(Printable(text))
		}
	}
	answers := make([]string, len(questions))
	for i, question := range questions {
		prompt := Printable(fmt.Sprintf("(%s@%s) %s", a.config.User, a.config.displayName(), question))
		if echos[i] {
			answer, err := a.prompter.Ask(a.ctx, prompt)
			if err != nil {
				a.aborted = err
				return nil, err
			}
			answers[i] = answer
			continue
		}
		secret, err := a.askSecret(prompt)
		if err != nil {
			return nil, err
		}
		answers[i] = string(secret)
		wipe(secret)
	}
	return answers, nil
}
