package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpg-bridge/internal/sshconfig"
	"gpg-bridge/internal/target"
	"gpg-bridge/sshfwd/config"
)

// byHand is what the user can do where setup cannot.
const byHand = "write the line yourself: ProxyCommand /path/to/gpg-bridge proxy --via '…' --alias %n --user %r %h %p"

// add returns the text with our lines for the hosts, which ssh has confirmed.
func (c *change) add(ctx context.Context, hosts []string) (*sshconfig.Text, error) {
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	without, err := c.text()
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		without.Remove(host)
	}
	before := map[string]config.Settings{}
	for _, host := range hosts {
		is, err := c.evaluator.settings(ctx, without.Bytes(), host)
		if err != nil {
			return nil, err
		}
		if _, ours := target.IsProxy(is.Text("proxycommand")); ours {
			c.ui.Tell(fmt.Sprintf("%s has its ProxyCommand gpg-bridge proxy from another line of yours", host))
			text.Remove(host)
			continue
		}
		lines, err := c.lines(host, is, text.Lines(host))
		if err != nil {
			return nil, err
		}
		if way := is.Text("proxyjump") + is.Text("proxycommand"); way != "" && !slices.Equal(lines, text.Lines(host)) {
			c.notes = append(c.notes, fmt.Sprintf("%s is now reached through %s; run setup again when that changes", host, way))
		}
		text.Set(host, lines...)
		before[host] = is
	}
	return text, c.confirm(ctx, text, before)
}

// confirm has ssh read the text: every host must have got our lines, and nothing else
// must have changed for it.
func (c *change) confirm(ctx context.Context, text *sshconfig.Text, before map[string]config.Settings) error {
	for host, was := range before {
		is, err := c.evaluator.settings(ctx, text.Bytes(), host)
		if err != nil {
			return &hostError{host, "with lines of ours, " + err.Error(), byHand}
		}
		want := value(text.Lines(host), "ProxyCommand")
		if got := is.Text("proxycommand"); got != want {
			return &hostError{host, fmt.Sprintf("other lines of %q come before ours: its ProxyCommand would be %q", c.file.Path(), got),
				"move all that is between the marks of gpg-bridge, with them, to the top of the file"}
		}
		may := []string{"proxycommand", "proxyjump", "proxyusefdpass", "canonicalizehostname"}
		if was.Text("proxyjump") != "" {
			may = append(may, "controlpath") // %C hashes the ProxyJump, too, from OpenSSH 9.6
		}
		if list := differences(was, is, may...); len(list) > 0 {
			return &hostError{host, "the lines would also change " + strings.Join(list, ", "), "see what depends on ProxyCommand in your ssh_config"}
		}
	}
	return nil
}

// lines returns our lines for a host. is what ssh says of it without any, and old are
// those that it has.
func (c *change) lines(host string, is config.Settings, old []string) ([]string, error) {
	line := c.proxyLine(is, value(old, "ProxyCommand"))
	command, err := proxyCommand(c.program, line)
	if err != nil {
		return nil, &hostError{host, err.Error(), byHand}
	}
	if is.On("proxyusefdpass", false) && is.Text("proxycommand") != "" {
		return nil, &hostError{host, "its ProxyCommand hands its socket over (ProxyUseFdpass), and cannot be kept", "give it one that does not, or name another way with --via or -J"}
	}
	fdpass := c.options.fdpass || !c.options.given.Changed("fdpass") && value(old, "ProxyUseFdpass") == "yes"
	if hops := line.Via + line.JumpHosts; fdpass && hops != "" {
		return nil, &hostError{host, "it is reached through " + hops + ": there is no socket to hand over", "leave --fdpass out, or say --fdpass=false"}
	}
	lines := []string{"ProxyCommand " + command}
	switch {
	case fdpass:
		lines = append(lines, "ProxyUseFdpass yes")
	case is.On("proxyusefdpass", false):
		lines = append(lines, "ProxyUseFdpass no")
	}
	// ssh leaves it to a ProxyCommand to resolve the name, and canonicalises it only if
	// told to do so always (resolve_canonicalize in OpenSSH's ssh.c).
	if is.On("canonicalizehostname", false) && is.Text("proxycommand") == "" && is.Text("proxyjump") == "" {
		lines = append(lines, "CanonicalizeHostname always")
	}
	return lines, nil
}

// value returns the rest of the first line that begins with the keyword.
func value(lines []string, keyword string) string {
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, keyword+" "); ok {
			return rest
		}
	}
	return ""
}

// A hostError says why the lines of a host are not written.
type hostError struct {
	host    string
	problem string
	advice  string
}

func (e *hostError) Error() string { return e.host + ": " + e.problem }

// Hint says what to do.
func (e *hostError) Hint() string { return e.advice }
