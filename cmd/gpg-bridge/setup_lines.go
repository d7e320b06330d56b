package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gpg-bridge/internal/sshconfig"
)

// byHand is what to do where setup cannot.
const byHand = "write the line yourself: ProxyCommand gpg-bridge proxy --via '…' --alias %n --user %r %h %p"

// change gives the text with our lines for the hosts, which ssh has confirmed.
func (s *setup) change(ctx context.Context, hosts []string) (*sshconfig.Text, error) {
	text, err := s.text()
	if err != nil {
		return nil, err
	}
	without, err := s.text()
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		without.Remove(host)
	}
	before := map[string]sshSettings{}
	for _, host := range hosts {
		is, err := s.ask.settings(ctx, without.Bytes(), host)
		if err != nil {
			return nil, err
		}
		if isProxy(is.get("proxycommand")) {
			s.ui.tell(fmt.Sprintf("%s has its ProxyCommand gpg-bridge proxy from another line of yours", host))
			text.Remove(host)
			continue
		}
		lines, err := s.lines(host, is, text.Lines(host))
		if err != nil {
			return nil, err
		}
		if way := is.get("proxyjump") + is.get("proxycommand"); way != "" && !slices.Equal(lines, text.Lines(host)) {
			s.notes = append(s.notes, fmt.Sprintf("%s is now reached through %s; run setup again when that changes", host, way))
		}
		text.Set(host, lines...)
		before[host] = is
	}
	return text, s.confirm(ctx, text, before)
}

// confirm lets ssh read the text: every host must have got our lines, and
// nothing else.
func (s *setup) confirm(ctx context.Context, text *sshconfig.Text, before map[string]sshSettings) error {
	for host, was := range before {
		is, err := s.ask.settings(ctx, text.Bytes(), host)
		if err != nil {
			return &setupError{host, "with lines of ours, " + err.Error(), byHand}
		}
		want := value(text.Lines(host), "ProxyCommand")
		if got := is.get("proxycommand"); got != want {
			return &setupError{host, fmt.Sprintf("other lines of %q come before ours: its ProxyCommand would be %q", s.file.Path(), got),
				"move all that is between the marks of gpg-bridge, with them, to the top of the file"}
		}
		may := []string{"proxycommand", "proxyjump", "proxyusefdpass", "canonicalizehostname"}
		if was.get("proxyjump") != "" {
			may = append(may, "controlpath") // %C hashes the ProxyJump, too, from OpenSSH 9.6
		}
		if list := differences(was, is, may...); len(list) > 0 {
			return &setupError{host, "the lines would also change " + strings.Join(list, ", "), "see what depends on ProxyCommand in your ssh_config"}
		}
	}
	return nil
}

// lines are ours for a host that is as ssh says without them, and had old ones.
func (s *setup) lines(host string, is sshSettings, old []string) ([]string, error) {
	flags := s.proxyFlags(is, value(old, "ProxyCommand"))
	command, err := s.command(flags)
	if err != nil {
		return nil, &setupError{host, err.Error(), byHand}
	}
	hops := flags.Lookup("via").Value.String() + flags.Lookup("jump").Value.String()
	if is.on("proxyusefdpass") && is.get("proxycommand") != "" {
		return nil, &setupError{host, "its ProxyCommand hands its socket over (ProxyUseFdpass), and cannot be kept", "give it one that does not, or name another way with --via or -J"}
	}
	fdpass := s.flags.fdpass || !s.flags.given.Changed("fdpass") && value(old, "ProxyUseFdpass") == "yes"
	if fdpass && hops != "" {
		return nil, &setupError{host, "it is reached through " + hops + ": there is no socket to hand over", "leave --fdpass out, or say --fdpass=false"}
	}
	lines := []string{"ProxyCommand " + command}
	switch {
	case fdpass:
		lines = append(lines, "ProxyUseFdpass yes")
	case is.on("proxyusefdpass"):
		lines = append(lines, "ProxyUseFdpass no")
	}
	// ssh canonicalises no name that a ProxyCommand is to resolve, unless told
	// so (resolve_canonicalize in OpenSSH's ssh.c).
	if is.on("canonicalizehostname") && is.get("proxycommand") == "" && is.get("proxyjump") == "" {
		lines = append(lines, "CanonicalizeHostname always")
	}
	return lines, nil
}

// value is what follows the keyword in the first of the lines that begins with
// it.
func value(lines []string, keyword string) string {
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, keyword+" "); ok {
			return rest
		}
	}
	return ""
}

// isProxy reports whether a ProxyCommand is gpg-bridge proxy.
func isProxy(command string) bool {
	words, ok := splitCommand(command)
	return ok && len(words) > 1 && words[1] == "proxy" && isOurs(words[0])
}

// proxyFlags are those of the line: as they were in the old one, then as they
// are given now. How the host is reached is asked of ssh, unless it is given.
func (s *setup) proxyFlags(is sshSettings, old string) *pflag.FlagSet {
	read := func(command string) *pflag.FlagSet {
		set := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
		set.Usage = func() {}
		own := new(proxyFlags)
		own.addTo(set)
		own.addPumpTo(set)
		words, _ := splitCommand(command)
		if isProxy(command) && set.Parse(words[2:]) != nil {
			return nil
		}
		return set
	}
	flags := read(old)
	if flags == nil {
		flags = read("") // somebody made something else of it
	}
	flags.Visit(func(f *pflag.Flag) {
		if !isRaw(f.Name) {
			_ = f.Value.Set(strings.ReplaceAll(f.Value.String(), "%%", "%"))
		}
	})
	reach := func(jump, via string) {
		_, _ = flags.Set("jump", jump), flags.Set("via", via)
	}
	if jump, via := is.get("proxyjump"), is.get("proxycommand"); jump != "" || via != "" {
		reach(jump, via)
	}
	s.flags.given.Visit(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil && !isRaw(f.Name) && f.Name != "fdpass" {
			_ = flags.Set(f.Name, f.Value.String())
		}
	})
	if s.flags.given.Changed("jump") || s.flags.given.Changed("via") {
		reach(strings.TrimPrefix(s.flags.proxy.jump, "none"), s.flags.proxy.via)
	}
	_ = flags.Set("config", s.flags.proxy.config)
	return flags
}

// isRaw: the tokens in these flags' values are for ssh.
func isRaw(flag string) bool { return flag == "jump" || flag == "via" }

// command is the ProxyCommand with these flags. The error says that there is no
// way to write it that a shell, ssh and gpg-bridge itself read alike.
func (s *setup) command(flags *pflag.FlagSet) (string, error) {
	words := []string{strings.ReplaceAll(s.program, "%", "%%"), "proxy"}
	flags.Visit(func(f *pflag.Flag) {
		if value := f.Value.String(); !slices.Contains(setupOwnArgs(), f.Name) && value != f.DefValue {
			if !isRaw(f.Name) {
				value = strings.ReplaceAll(value, "%", "%%")
			}
			words = append(words, flagWords(f, value)...)
		}
	})
	words = append(words, "--alias", "%n", "--user", "%r", "%h", "%p")
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteWord(word, runtime.GOOS)
	}
	line := strings.Join(quoted, " ")
	if read, ok := splitCommand(line); !ok || !slices.Equal(read, words) || strings.ContainsAny(line, "\r\n\x00") {
		return "", fmt.Errorf("its ProxyCommand cannot be written into another one: %s", line)
	}
	return line, nil
}

// flagWords are a flag and its value as words of a command line.
func flagWords(f *pflag.Flag, value string) []string {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	if f.NoOptDefVal != "" { // one without a value
		return []string{name}
	}
	return []string{name, value}
}

// quoteWord quotes a word so that a POSIX shell, fish, csh, ssh's check of the
// quotes in a line (argv_split in OpenSSH's misc.c) and splitCommand read it
// alike: so none is added by a backslash. (fish still makes one of two backslashes
// in a word.) On Windows no shell reads it, but the C library, which knows only
// double quotes.
func quoteWord(word, goos string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+:,./_-"
	switch {
	case word != "" && strings.Trim(word, safe) == "":
		return word
	case goos == "windows":
		return `"` + word + `"`
	case !strings.Contains(word, "'"):
		return "'" + word + "'"
	case !strings.ContainsAny(word, "\"$`\\!"):
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}
