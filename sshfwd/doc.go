// Package sshfwd is the SSH client of gpg-bridge: one connection to a host, as the
// user's own ssh would make it. It dials and authenticates, asks sshd to listen on a
// Unix socket (streamlocal-forward@openssh.com), runs commands, and drives an
// interactive session on the user's terminal. A Client is a bridge's link.Link.
//
// It knows nothing of GPG: what arrives on a forwarded socket is a byte stream
// handed to a function of the caller's.
//
// Where to connect to is decided in sshfwd/config, who is there in sshfwd/hostkey, and
// who we are in sshfwd/login. Read the rest in this order: route.go (how to get there),
// handshake.go, client.go (the connection and who owns it), forward.go (the remote
// socket), run.go, session.go and sessionchannel.go (commands and shells).
package sshfwd
