package target

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"gpg-bridge/internal/proc"
	"gpg-bridge/sshfwd/config"
)

// A ProxyLine has the flags of gpg-bridge proxy.
type ProxyLine struct {
	Spec
	Fdpass bool
	Quiet  bool
}

// NewProxyLine returns a ProxyLine without any flags.
func NewProxyLine() ProxyLine { return ProxyLine{Spec: NewSpec("")} }

// AddFlags adds all of them.
func (l *ProxyLine) AddFlags(to *pflag.FlagSet) {
	l.Spec.AddFlags(to, ForProxy)
	to.BoolVar(&l.Fdpass, "fdpass", l.Fdpass, "ssh_config has ProxyUseFdpass yes (default: if our parent's name is ssh, and it looks like that)")
	to.BoolVarP(&l.Quiet, "quiet", "q", l.Quiet, "never say that there is no bridge")
}

// Words returns the flags that differ from their defaults as the words of a command line, from
// which [ParseProxy] makes the same ProxyLine.
func (l ProxyLine) Words() []string {
	plain, filled := newSet(), newSet()
	none := NewProxyLine()
	none.AddFlags(plain)
	l.AddFlags(filled)
	return differing(filled, plain)
}

// ParseProxy reads a ProxyCommand. line is nil if it is not gpg-bridge proxy. The error is a
// *ProxyLineError if it is, but has flags that proxy does not have.
func ParseProxy(command string) (line *ProxyLine, err error) {
	words, ok := IsProxy(command)
	if !ok {
		return nil, nil
	}
	parsed, set := NewProxyLine(), newSet()
	parsed.AddFlags(set)
	if err := set.Parse(words); err != nil {
		return nil, &ProxyLineError{command, err}
	}
	return &parsed, nil
}

// IsProxy reports whether a ProxyCommand is gpg-bridge proxy, and returns the words after these
// two.
func IsProxy(command string) (flags []string, ok bool) {
	words, ok := SplitCommand(command)
	if !ok || len(words) < 2 || words[1] != "proxy" || !isOurs(words[0]) {
		return nil, false
	}
	return words[2:], true
}

// inner replaces a ProxyCommand that is gpg-bridge proxy with the proxy's own way to the host.
// It returns the proxy's flags, nil if there is no such proxy.
func inner(resolved *config.Config) (*ProxyLine, error) {
	line, err := ParseProxy(resolved.ProxyCommand)
	if line == nil || err != nil {
		return nil, err
	}
	resolved.ProxyCommand, resolved.ProxyJump, resolved.ProxyUseFdpass = line.Via, line.JumpHosts, false
	return line, nil
}

// adopt takes over what the proxy's line in ssh_config says of the agent and the host, as far
// as the Spec says nothing about it.
func (s *Spec) adopt(line *ProxyLine) {
	s.AgentSocket = cmp.Or(s.AgentSocket, line.AgentSocket)
	s.AllowUnrestricted = s.AllowUnrestricted || line.AllowUnrestricted
	s.NoCompat = s.NoCompat || line.NoCompat
	s.RemoteSocket = cmp.Or(s.RemoteSocket, line.RemoteSocket)
	s.Keys = cmp.Or(s.Keys, line.Keys)
}

// isOurs reports whether program is gpg-bridge, by its name, wherever that is installed, or
// this program under another name.
func isOurs(program string) bool {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(strings.ReplaceAll(program, `\`, "/"))), ".exe")
	self, err := os.Executable()
	return name == "gpg-bridge" || err == nil && filepath.IsAbs(program) && proc.SameFile(program, self)
}

// SplitCommand splits a command into words as a shell does that knows quotes and nothing else.
// ok is false if a shell would do more.
func SplitCommand(command string) (words []string, ok bool) {
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

// A ProxyLineError says that the ProxyCommand is ours and cannot be understood.
type ProxyLineError struct {
	command string
	err     error
}

func (e *ProxyLineError) Error() string { return fmt.Sprintf("ProxyCommand %q: %v", e.command, e.err) }
func (e *ProxyLineError) Unwrap() error { return e.err }

// Hint says what to do.
func (e *ProxyLineError) Hint() string {
	return "write it as gpg-bridge setup does: /path/to/gpg-bridge proxy --alias %n --user %r %h %p"
}
