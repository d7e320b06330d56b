package prepare

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// loginTimeout bounds LoginHome. On the host, the script gives the start-up files
// 5 seconds, and then one more to end.
const loginTimeout = 15 * time.Second

//go:embed login.sh
var loginBody string

// ErrLoginHome says that the login shell's answer is not a usable path.
var ErrLoginHome = errors.New("no usable answer")

// A LoginTimeoutError says that the start-up files of the login shell took more than
// 5 seconds, so the GNUPGHOME that they may set is not known.
type LoginTimeoutError struct{}

func (*LoginTimeoutError) Error() string {
	return "the login shell on the host did not answer within 5 s; gpg in it may look elsewhere for its agent"
}

// Hint says what to do.
func (*LoginTimeoutError) Hint() string {
	return "if its start-up files set GNUPGHOME, let them do it before what is slow, or in ~/.zshenv for zsh; then connect with --takeover"
}

// LoginHome finds out, with one command, the GnuPG home in a login shell of the account.
// It returns "" if that is the same as for every command of the account, and if it
// cannot be found out because the login shell is an unknown one or ends without an
// answer. The error is a *LoginTimeoutError if the shell takes too long, and wraps
// ErrLoginHome if its answer is not a path.
//
// This runs the shell's start-up files, without a terminal or input. They may start
// programs that use the agent, so its socket should be forwarded before; and they
// should not be run often.
func LoginHome(ctx context.Context, host Host) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	answer := &loginAnswer{mark: newMarker(), done: cancel}
	err := host.Run(ctx, commandOf(compact(loginBody), "mark="+quote(answer.mark)), strings.NewReader(""), answer, io.Discard)
	home := answer.home["login"]
	switch {
	case home == "" && answer.hung:
		return "", &LoginTimeoutError{}
	case home == "" && err != nil && !answer.ended:
		return "", fmt.Errorf("ask the login shell on the host: %w", err)
	case home == "" || home == answer.home["plain"]:
		return "", nil
	case !IsHome(home):
		return "", fmt.Errorf("ask the login shell on the host: %w", ErrLoginHome)
	}
	return home, nil
}

// IsHome reports whether a path may be given as Options.Home.
func IsHome(path string) bool {
	return strings.HasPrefix(path, "/") && !hasControl(path) && len(path) <= maxSocketPath
}

// loginAnswer reads the lines that begin with the marker. At the last one it calls
// done, so that programs which the start-up files have left running are not waited
// for.
type loginAnswer struct {
	mark  string
	done  func()
	line  []byte
	home  map[string]string // the GnuPG home, of a "plain" command and in a "login" shell
	hung  bool              // the start-up files were killed: a later answer does not count
	ended bool
}

// Write reads output of the host. It keeps one line of it, of bounded length.
func (a *loginAnswer) Write(p []byte) (int, error) {
	a.line = takeLines(a.line, p, maxReportLine, a.take)
	return len(p), nil
}

func (a *loginAnswer) take(line string) {
	text, ours := strings.CutPrefix(line, a.mark+" ")
	if !ours {
		return
	}
	word, home, _ := strings.Cut(text, " ")
	if a.home == nil {
		a.home = make(map[string]string)
	}
	switch word {
	case "plain", "login":
		if !a.hung {
			a.home[word] = home
		}
	case "hung":
		a.hung = true
	case "end":
		a.ended = true
		a.done()
	}
}
