package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"gpg-bridge/sshfwd"
)

// A target is what one bridge is for: an account on a host, reached in one way,
// with one agent behind it.
type target struct {
	id      string // for package share
	name    string // as the user named it
	address string // user@host:port, resolved
}

// newTarget names what config leads to. Whatever makes two bridges differ makes
// two targets; the same host under two aliases is one.
func newTarget(config *sshfwd.Config, local *localFlags, remote *remoteFlags) target {
	address := config.User + "@" + net.JoinHostPort(strings.ToLower(config.Hostname), strconv.Itoa(config.Port))
	sum := sha256.New()
	for _, part := range []string{
		address, config.HostKeyAlias, config.ProxyJump, expandedProxy(config),
		local.agentSocket, strconv.FormatBool(local.allowUnrestricted), strconv.FormatBool(local.noCompat),
		os.Getenv("GNUPGHOME"), remote.socket, remote.keys,
	} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return target{hex.EncodeToString(sum.Sum(nil)[:10]), config.Destination, address}
}

// expandedProxy is the ProxyCommand without tokens: ssh gives gpg-bridge proxy
// its --via so.
func expandedProxy(config *sshfwd.Config) string {
	key := cmp.Or(config.HostKeyAlias, config.OriginalHost)
	return strings.NewReplacer("%%", "%", "%h", config.Hostname, "%n", config.OriginalHost, "%k", key,
		"%p", strconv.Itoa(config.Port), "%r", config.User).Replace(config.ProxyCommand)
}

// inner takes gpg-bridge proxy out of the way to the host: a bridge that used it
// would start a bridge. What the proxy itself goes through takes its place. It
// returns the proxy's flags, nil where there is none.
func inner(config *sshfwd.Config) (*proxyFlags, error) {
	words, ok := splitCommand(config.ProxyCommand)
	if !ok || len(words) < 2 || words[1] != "proxy" || !isOurs(words[0]) {
		return nil, nil
	}
	var flags proxyFlags
	set := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	set.Usage = func() {}
	flags.addTo(set)
	flags.addPumpTo(set)
	if err := set.Parse(words[2:]); err != nil {
		return nil, &proxyLineError{config.ProxyCommand, err}
	}
	config.ProxyCommand, config.ProxyJump, config.ProxyUseFdpass = flags.via, flags.jump, false
	return &flags, nil
}

// target takes a proxy of ours out of config, adopts its flags, and names what is
// left.
func (f *sshFlags) target(config *sshfwd.Config) (target, error) {
	line, err := inner(config)
	if err != nil {
		return target{}, err
	}
	if line != nil {
		f.adopt(line)
	}
	return newTarget(config, &f.local, &f.remote), nil
}

// adopt takes over what the proxy's line in ssh_config says of the agent and the
// host, where the command line says nothing: they are to share one bridge.
func (f *sshFlags) adopt(line *proxyFlags) {
	f.local.agentSocket = cmp.Or(f.local.agentSocket, line.local.agentSocket)
	f.local.allowUnrestricted = f.local.allowUnrestricted || line.local.allowUnrestricted
	f.local.noCompat = f.local.noCompat || line.local.noCompat
	f.remote.socket = cmp.Or(f.remote.socket, line.remote.socket)
	f.remote.keys = cmp.Or(f.remote.keys, line.remote.keys)
}

// isOurs: by its name, wherever it is installed.
func isOurs(program string) bool {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(strings.ReplaceAll(program, `\`, "/"))), ".exe")
	self, err := os.Executable()
	return name == "gpg-bridge" || err == nil && program == self
}

// splitCommand makes words of a command as a shell does that knows quotes and
// nothing else. It is not ok where a shell would do more.
func splitCommand(command string) (words []string, ok bool) {
	var word strings.Builder
	var quote rune
	inWord := false
	for _, c := range command {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) > 1 && words[0] == "exec" {
		words = words[1:]
	}
	return words, quote == 0
}

// A proxyLineError says that the ProxyCommand is ours and cannot be understood.
type proxyLineError struct {
	command string
	err     error
}

func (e *proxyLineError) Error() string { return fmt.Sprintf("ProxyCommand %q: %v", e.command, e.err) }
func (e *proxyLineError) Unwrap() error { return e.err }

// Hint says what to do.
func (e *proxyLineError) Hint() string {
	return "write it as gpg-bridge setup does: gpg-bridge proxy --alias %n --user %r %h %p"
}

var errNoDestination = errors.New("which host?")
