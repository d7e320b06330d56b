package hostkey

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

const (
	knownHostsCommandTag = "KnownHostsCommand" // instead of a file's name
	maxKnownHostsOutput  = 16 << 20
	commandGrace         = 2 * time.Second // after it was killed, for its output to end
)

// commandKeys returns the keys that KnownHostsCommand prints for a name
// (load_hostkeys_command in OpenSSH's sshconnect.c). invocation is %I: ORDER
// before the key is known, HOSTNAME or ADDRESS; key is nil for ORDER. A command
// that does not exist is ignored, as in ssh; one that fails is an error, for
// ORDER too (exit_status in OpenSSH's misc.c makes no difference).
func (p *Policy) commandKeys(invocation, name string, key ssh.PublicKey) ([]knownKey, error) {
	args, err := config.SplitArguments(p.config.KnownHostsCommand)
	if err != nil || len(args) == 0 {
		return nil, p.commandProblem(err)
	}
	for i := range args[1:] {
		args[i+1], err = config.Expand(args[i+1], p.commandToken(invocation, name, key), true)
		if err != nil {
			return nil, err
		}
	}
	path, err := exec.LookPath(args[0])
	if _, missing := os.Stat(args[0]); !filepath.IsAbs(args[0]) || err != nil && missing != nil {
		p.log.Warn("KnownHostsCommand is not there", "command", args[0], "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, p.commandProblem(err)
	}
	out, err := p.runKnownHostsCommand(path, args[1:])
	if err != nil {
		return nil, p.commandProblem(err)
	}
	return keysFor(parseKnownHosts(out, knownHostsCommandTag), name), nil
}

func (p *Policy) commandProblem(err error) error {
	if err == nil {
		return nil
	}
	return &config.Error{Problem: "KnownHostsCommand failed", Advice: "run it by hand, or correct it in ssh_config", Err: err}
}

// commandToken returns the tokens of KnownHostsCommand (ssh_config(5), TOKENS).
func (p *Policy) commandToken(invocation, name string, key ssh.PublicKey) func(byte) (string, error) {
	return func(t byte) (string, error) {
		switch {
		case t == 'H':
			return name, nil
		case t == 'I':
			return invocation, nil
		case strings.IndexByte("tfK", t) < 0:
			return p.config.Token(t)
		case key == nil:
			return "NONE", nil
		case t == 't':
			return key.Type(), nil
		case t == 'f':
			return p.fingerprint(key), nil
		}
		return base64.StdEncoding.EncodeToString(key.Marshal()), nil
	}
}

func (p *Policy) runKnownHostsCommand(path string, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, config.LoginTimeout)
	defer cancel()
	out := &boundedBuffer{max: maxKnownHostsOutput}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = out, p.stderr
	cmd.WaitDelay = commandGrace
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return out.held.Bytes(), nil
}

// boundedBuffer refuses to hold more than max bytes. The buffer is not embedded: io.Copy
// would then use its ReadFrom, which has no bound.
type boundedBuffer struct {
	held bytes.Buffer
	max  int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.held.Len()+len(p) > b.max {
		return 0, errors.New("it prints too much")
	}
	return b.held.Write(p)
}
