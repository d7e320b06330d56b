package config

// LocalCommandLine is LocalCommand with its tokens expanded (ssh_session2 in OpenSSH's ssh.c),
// "" if there is none. Its names are checked as those of a ProxyCommand. Errors are *Error.
func (c *Config) LocalCommandLine() (string, error) {
	if c.LocalCommand == "" {
		return "", nil
	}
	if err := c.checkInCommand("LocalCommand"); err != nil {
		return "", err
	}
	return Expand(c.LocalCommand, c.localCommandToken, false)
}

// localCommandToken returns the tokens of LocalCommand (ssh_config(5), TOKENS; those of
// DEFAULT_CLIENT_PERCENT_EXPAND_ARGS in ssh.c). %T is the tunnel's interface, of which there is
// none.
func (c *Config) localCommandToken(t byte) (string, error) {
	if t == 'T' {
		return "NONE", nil
	}
	return c.Token(t)
}
