// Package sshfwd is the SSH client of gpg-bridge: it resolves a destination
// the way the user's own ssh would (ssh_config through ssh -G), dials and
// authenticates, checks the host's key against known_hosts, asks sshd to
// listen on a Unix socket (streamlocal-forward@openssh.com), runs commands,
// and drives an interactive session on the user's terminal.
//
// It knows nothing of GPG: what arrives on a forwarded socket is a byte stream
// handed to a function of the caller's.
//
// Read it in this order: config.go (what to connect to), route.go (how to get
// there), client.go (the connection and who owns it), hostkey.go and auth.go
// (who is there, who are we), forward.go (the remote socket), run.go and
// session.go (commands and shells).
package sshfwd
