// Package sshtest is an SSH server that runs inside this process, for the
// tests and for `make demo`: a host that has Unix socket forwarding, sessions
// run by a real shell, and whose faults are at hand.
//
// It is made in the style of gliderlabs/ssh: a Server has one handler per
// global request type and one per channel type, and both maps may be changed
// before Start. What it serves of itself follows OpenSSH's sshd (PROTOCOL
// section 2.4; serverloop.c, session.c, channels.c); where it differs, the
// comment says so. It listens on 127.0.0.1 only, and is no server for anything
// but tests: every user name is accepted, and sessions run as this process.
//
// Read it in this order: server.go (connections, and who waits for what),
// conn.go (one connection's requests and channels), streamlocal.go (sockets),
// session.go and proc.go (commands, shells, ptys), faults.go (how it goes
// wrong on demand), raw.go (messages that nobody should send), testing.go (the
// helper for tests).
package sshtest
