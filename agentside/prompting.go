package agentside

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gpg-bridge/assuan"
)

// maxAgentConf bounds what is read of gpg-agent.conf, in bytes.
const maxAgentConf = 1 << 20

// StartupEnvironment asks the agent for the environment of the prompts that restricted
// connections cause: GPG_TTY is the terminal that a pinentry for text opens, DISPLAY is
// where one with windows opens them. The agent has it from its start, or from the last
// UPDATESTARTUPTTY. Only look may call it.
func (id Identity) StartupEnvironment() (map[string]string, error) {
	response, err := id.session.SendCommands([]byte("GETINFO std_startup_env\n"))
	return parseEnvironment(response), err
}

// ConnectMute opens a session in which the agent asks its user nothing: what would
// need a prompt fails with GPG_ERR_NO_PIN_ENTRY, and everything else works as in a session
// of Connect's. It is a connection to the main socket that was restricted afterwards, and
// proved to be. No agent is started.
//
// Errors: those of Connect, and ErrNotOwnAgent.
func (a *Agent) ConnectMute(ctx context.Context) (*Session, error) {
	session, _, err := a.connectMain(ctx, func(s *Session) error {
		// A restricted connection may not set this option (gnupg agent/command.c).
		if ok, err := s.says("OPTION pinentry-mode=error\n"); err != nil || !ok {
			return errors.Join(ErrUnrestricted, err)
		}
		return prove(s)
	})
	return session, err
}

// connectMain connects to the main socket of the agent that Connect reaches, and also
// returns its path.
func (a *Agent) connectMain(ctx context.Context, check func(*Session) error) (session *Session, main string, err error) {
	session, err = a.reach(ctx, func(at *Endpoint, _ bool) (*Session, error) {
		main, err = a.mainPath(ctx, at)
		if err != nil {
			return nil, err
		}
		at = &Endpoint{locator: a.Locator, path: main, fixed: true}
		return a.connect(ctx, noStart{at, a.dialRunning}, check)
	})
	return session, main, err
}

// parseEnvironment reads the D lines, in which each NAME=VALUE ends with a NUL
// (gnupg agent/command.c, cmd_getinfo).
func parseEnvironment(response []byte) map[string]string {
	var data []byte
	for line := range bytes.Lines(response) {
		if assuan.KindOf(line) == assuan.KindData {
			data = append(data, bytes.TrimSuffix(line[len("D "):], []byte("\n"))...)
		}
	}
	variables := map[string]string{}
	for entry := range strings.SplitSeq(string(data), "\x00") {
		if plain, err := url.PathUnescape(entry); err == nil {
			if name, value, ok := strings.Cut(plain, "="); ok {
				variables[name] = value
			}
		}
	}
	return variables
}

// pinentryPlaces says where to look for the name of the agent's pinentry.
type pinentryPlaces struct {
	files   []string // the agent's configuration files; the first that names one counts
	builtIn string   // the program that GnuPG was built for
}

// Pinentry returns the path of the program by which the agent asks its user, with symbolic
// links resolved. gpgconf does not say what gpg-agent.conf sets, so that file is read.
//
// Errors: ErrNoGpgconf, a *GpgconfError.
func (a *Agent) Pinentry(ctx context.Context) (string, error) {
	places, err := a.pinentryPlaces(ctx)
	if err != nil {
		return "", err
	}
	program := places.builtIn
	for _, file := range places.files {
		if named := namedPinentry(file); named != "" {
			program = named
			break
		}
	}
	if path, err := filepath.EvalSymlinks(program); err == nil {
		return path, nil
	}
	return program, nil
}

// pinentryPlaces asks gpgconf, and remembers the answer until forget.
func (a *Agent) pinentryPlaces(ctx context.Context) (*pinentryPlaces, error) {
	a.mu.Lock()
	known := a.places
	a.mu.Unlock()
	if known != nil {
		return known, nil
	}
	places := &pinentryPlaces{}
	for _, name := range []string{"homedir", "sysconfdir"} {
		dir, err := a.Locator.socketPath(ctx, name)
		if err != nil {
			return nil, err
		}
		places.files = append(places.files, filepath.Join(dir, "gpg-agent.conf"))
	}
	out, err := a.Locator.gpgconf(ctx, "--list-components")
	if err != nil {
		return nil, err
	}
	places.builtIn = builtInPinentry(string(out))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.places = places
	return places, nil
}

// namedPinentry returns the last pinentry-program of a configuration file, which is the
// one that the agent uses.
func namedPinentry(path string) (program string) {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxAgentConf))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		option, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if option == "pinentry-program" {
			program = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return program
}

// builtInPinentry reads gpgconf's list: name, description and path, percent-escaped.
func builtInPinentry(components string) string {
	for line := range strings.Lines(components) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if fields[0] == "pinentry" && len(fields) > 2 {
			if path, err := url.PathUnescape(fields[2]); err == nil {
				return path
			}
		}
	}
	return ""
}
