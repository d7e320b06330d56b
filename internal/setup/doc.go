// Package setup writes gpg-bridge proxy into the user's ssh_config as the ProxyCommand of
// hosts, takes it out again, and prints services that keep bridges up. With the lines, plain
// ssh brings the user's agent along.
package setup
