// Package fakesshd is an SSH server that runs inside this process, for the tests and for
// `make demo`: a host with Unix socket forwarding, sessions run by a real shell, and faults
// on demand.
//
// It is made in the style of gliderlabs/ssh: a Server has one handler per
// global request type and one per channel type, and both maps may be changed
// before Start. The standard handlers follow OpenSSH's sshd (PROTOCOL section
// 2.4; serverloop.c, session.c, channels.c); where one differs, its comment says
// so. The server listens on 127.0.0.1 only, and is for nothing but tests: every
// user name is accepted, and sessions run as this process's user.
//
// Read it in this order: server.go (connections, and who waits for what),
// conn.go (one connection's requests and channels), streamlocal.go (sockets),
// session.go and proc.go (commands, shells, ptys), faults.go (how it goes
// wrong on demand), raw.go (messages that nobody should send), testing.go (the
// helper for tests).
package fakesshd
