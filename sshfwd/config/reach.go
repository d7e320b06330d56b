package config

import "time"

// LoginTimeout is the time that the server and the network have for the log-in, and
// for the key exchange if there is no ConnectTimeout: sshd's own LoginGraceTime. The
// time that the user takes to answer does not count.
const LoginTimeout = 2 * time.Minute

// Proxied reports whether a proxy or a jump host makes the connection: the host's
// address is then not known here.
func (c *Config) Proxied() bool { return c.ProxyJump != "" || c.ProxyCommand != "" }

// ConnectLimit is the time that a connection through a proxy has to come about.
func (c *Config) ConnectLimit() time.Duration {
	if c.ConnectTimeout > 0 {
		return c.ConnectTimeout
	}
	return LoginTimeout
}
