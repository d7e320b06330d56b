package setup

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"gpg-bridge/internal/target"
	"gpg-bridge/sshfwd/config"
)

// proxyLine returns the flags of gpg-bridge proxy in a host's line: those of old, the
// ProxyCommand that is ours now, with the way to the host that ssh says otherwise, and
// then what the user has given.
func (c *change) proxyLine(is config.Settings, old string) target.ProxyLine {
	line := target.NewProxyLine()
	if read, err := target.ParseProxy(old); err == nil && read != nil { // else somebody made something else of it
		line = *read
	}
	line.Host, line.User = "", ""
	eachLiteral(&line.Spec, func(text string) string { return strings.ReplaceAll(text, "%%", "%") })
	if jump, via := is.Text("proxyjump"), is.Text("proxycommand"); jump != "" || via != "" {
		line.JumpHosts, line.Via = jump, via
	}
	c.options.overrule(&line.Spec)
	line.ConfigFile = c.flagF
	return line
}

// eachLiteral changes the texts of a Spec in which a "%" means itself. In JumpHosts and
// Via it begins a token, which ssh replaces; Host and User are tokens in our line.
func eachLiteral(spec *target.Spec, change func(string) string) {
	for _, field := range []*string{&spec.ConfigFile, &spec.AgentSocket, &spec.RemoteSocket, &spec.Keys} {
		*field = change(*field)
	}
}

// proxyCommand writes the ProxyCommand that runs program with the flags of line. The error
// says that there is no way to write it that a shell, ssh and gpg-bridge itself read alike.
func proxyCommand(program string, line target.ProxyLine) (string, error) {
	escape := func(text string) string { return strings.ReplaceAll(text, "%", "%%") }
	eachLiteral(&line.Spec, escape)
	words := append([]string{escape(program), "proxy"}, line.Words()...)
	words = append(words, "--alias", "%n", "--user", "%r", "%h", "%p")
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteWord(word, runtime.GOOS)
	}
	command := strings.Join(quoted, " ")
	if read, ok := target.SplitCommand(command); !ok || !slices.Equal(read, words) || strings.ContainsAny(command, "\r\n\x00") {
		return "", fmt.Errorf("its ProxyCommand cannot be written into another one: %s", command)
	}
	return command, nil
}

// quoteWord quotes a word so that a POSIX shell, fish, csh, ssh's check of a line's quotes
// (argv_split in OpenSSH's misc.c) and target.SplitCommand read it alike. So it never adds
// a backslash. (fish still makes one of two backslashes in a word.) On Windows no shell
// reads it, but the C library, which knows only double quotes.
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
