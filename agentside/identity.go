package agentside

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"gpg-bridge/assuan"
)

// ErrNotOwnAgent says that the agent in use is not the one whose main socket gpgconf names,
// so its main socket is not known, and it cannot be asked who it is.
var ErrNotOwnAgent = errors.New("the agent in use is not this GnuPG home's own")

// An Identity is what a running agent says about itself.
type Identity struct {
	PID int // its process

	// Main is the path of its main socket; the paths of the others begin with it.
	Main string

	agent   *Agent
	session *Session
}

// Connections asks the agent how many connections it has: of all programs, to all its
// sockets, this conversation included. Only look may call it.
//
// sure is false if another conversation of the same Agent had begun and was not greeted
// yet: the agent counts a connection only shortly before it greets, so there may be one
// more than it says. The error is ErrNoNumber if the agent does not know the question, or
// an error of the conversation.
func (id Identity) Connections() (all int, sure bool, err error) {
	sure = id.agent.ungreeted.Load() == 0
	response, err := id.session.SendCommands([]byte("GETINFO connections\n"))
	if err == nil {
		all, err = parseNumber(response)
	}
	return all, sure, err
}

// Identity asks the agent who it is. Restricted connections may not ask, so it opens a
// conversation at the main socket, and calls look while that is open. No agent is started.
//
// Errors: ErrNotOwnAgent if the user named another agent's socket; those of Connect; look's.
func (a *Agent) Identity(ctx context.Context, look func(Identity) error) error {
	session, main, err := a.connectMain(ctx, func(*Session) error { return nil })
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	err = a.identify(session, main, look)
	return errors.Join(err, session.Disconnect())
}

// identify calls look with the Identity of the agent at the other end of a session with
// its main socket.
func (a *Agent) identify(session *Session, main string, look func(Identity) error) error {
	response, err := session.SendCommands([]byte("GETINFO pid\n"))
	if err != nil {
		return err
	}
	pid, err := parsePID(response)
	if err != nil {
		return err
	}
	return look(Identity{pid, main, a, session})
}

// ProcessID returns the agent's process id; see Identity.
func (a *Agent) ProcessID(ctx context.Context) (int, error) {
	var pid int
	err := a.Identity(ctx, func(id Identity) error { pid = id.PID; return nil })
	return pid, err
}

// mainPath returns the path of the main socket of the agent at an endpoint. For a socket
// that the user named it is known only if gpgconf names that socket, too. It is remembered
// then, whatever gpgconf says later.
func (a *Agent) mainPath(ctx context.Context, at *Endpoint) (string, error) {
	if !at.fixed {
		return at.main(ctx)
	}
	a.mu.Lock()
	own := a.own
	a.mu.Unlock()
	if own != "" {
		return own, nil
	}
	main, err := a.Locator.socketPath(ctx, mainSocket)
	if err != nil {
		return "", err
	}
	if at.path != main {
		if extra, err := a.Locator.socketPath(ctx, extraSocket); err != nil || at.path != extra {
			return "", errors.Join(ErrNotOwnAgent, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own = main
	return main, nil
}

var (
	errNoPID = errors.New("the agent did not tell its process id")

	// ErrNoNumber says that the agent was asked for a number and answered something else.
	ErrNoNumber = errors.New("the agent did not tell a number")
)

func parsePID(response []byte) (int, error) {
	pid, err := parseNumber(response)
	if err != nil || pid <= 1 {
		return 0, errNoPID
	}
	return pid, nil
}

// parseNumber reads "D 123" and OK.
func parseNumber(response []byte) (int, error) {
	line, rest, _ := bytes.Cut(response, []byte("\n"))
	digits, ok := bytes.CutPrefix(assuan.Trim(line), []byte("D "))
	number, err := strconv.Atoi(string(digits))
	if !ok || err != nil || number < 0 || assuan.KindOf(rest) != assuan.KindOK {
		return 0, ErrNoNumber
	}
	return number, nil
}
