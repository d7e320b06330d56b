package sshfwd

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	knownHostsCommandTag = "KnownHostsCommand" // in place of a file's name
	maxKnownHostsOutput  = 16 << 20
)

// commandKeys gives the keys for a name that KnownHostsCommand prints
// (load_hostkeys_command in OpenSSH's sshconnect.c). invocation is %I: ORDER
// before the key is known, HOSTNAME or ADDRESS; key is nil for ORDER. A command
// that cannot be run counts for nothing, as for ssh; one that fails is an error.
func (p *hostKeyPolicy) commandKeys(invocation, name string, key ssh.PublicKey) ([]knownKey, error) {
	args, err := splitArguments(p.config.KnownHostsCommand)
	if err != nil || len(args) == 0 {
		return nil, p.commandProblem(err)
	}
	for i := range args[1:] {
		args[i+1], err = expand(args[i+1], p.commandToken(invocation, name, key), true)
		if err != nil {
			return nil, err
		}
	}
	path, err := exec.LookPath(args[0])
	if err != nil || !filepath.IsAbs(args[0]) {
		p.log.Warn("KnownHostsCommand cannot be run", "command", args[0], "err", err)
		return nil, nil
	}
	out, err := p.runKnownHostsCommand(path, args[1:])
	if err != nil {
		return nil, p.commandProblem(err)
	}
	return keysFor(parseKnownHosts(out, knownHostsCommandTag), name), nil
}

func (p *hostKeyPolicy) commandProblem(err error) error {
	if err == nil {
		return nil
	}
	return &ConfigError{Problem: "KnownHostsCommand failed", Advice: "run it by hand, or correct it in ssh_config", Err: err}
}

// commandToken gives the tokens of KnownHostsCommand (ssh_config(5), TOKENS).
func (p *hostKeyPolicy) commandToken(invocation, name string, key ssh.PublicKey) func(byte) (string, error) {
	return func(t byte) (string, error) {
		switch {
		case t == 'H':
			return name, nil
		case t == 'I':
			return invocation, nil
		case strings.IndexByte("tfK", t) < 0:
			return p.config.token(t)
		case key == nil:
			return "NONE", nil
		case t == 't':
			return key.Type(), nil
		case t == 'f':
			return fingerprint(key), nil
		}
		return base64.StdEncoding.EncodeToString(key.Marshal()), nil
	}
}

func (p *hostKeyPolicy) runKnownHostsCommand(path string, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, loginTimeout)
	defer cancel()
	out := &boundedBuffer{max: maxKnownHostsOutput}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = out, p.config.Stderr
	cmd.WaitDelay = hangupGrace
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// boundedBuffer refuses to hold more than max bytes.
type boundedBuffer struct {
	bytes.Buffer
	max int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		return 0, errors.New("it prints too much")
	}
	return b.Buffer.Write(p)
}

// splitArguments splits a command into words as ssh does, with quotes and
// backslashes but without a shell (argv_split in OpenSSH's misc.c).
func splitArguments(s string) ([]string, error) {
	var args []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote == 0 && (ch == ' ' || ch == '\t'):
			if inWord {
				args = append(args, word.String())
				word.Reset()
			}
			inWord = false
			continue
		case ch == '\\' && i+1 < len(s) && (strings.IndexByte(`'"\`, s[i+1]) >= 0 || quote == 0 && s[i+1] == ' '):
			i++
			word.WriteByte(s[i])
		case quote == 0 && (ch == '"' || ch == '\''):
			quote = ch
		case quote != 0 && ch == quote:
			quote = 0
		default:
			word.WriteByte(ch)
		}
		inWord = true
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %q is not closed", string(rune(quote)))
	}
	if inWord {
		args = append(args, word.String())
	}
	return args, nil
}
