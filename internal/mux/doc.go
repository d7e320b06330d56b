// Package mux makes a bridge's link of an OpenSSH connection that is already
// there: that of a ControlMaster (ssh_config(5)), over its control socket. No
// second login is needed, which is the only way to a host that wants more than a
// key.
//
// The protocol is OpenSSH's PROTOCOL.mux, version 4; what it leaves open is as
// in OpenSSH's mux.c. No ssh is started, so that nothing can fall back to a
// connection of its own.
//
// The master is the user's, and is to behave as if we were not there:
//
//   - A control connection counts as a session (channel_still_open in
//     channels.c): the user's ssh would not end with their shell while one is
//     open. So there is none but for a request, and the master's end is seen at
//     its process.
//   - What is opened through the master restarts its ControlPersist. Whoever
//     looks at the socket from time to time must let that run out.
//   - Its proxy mode ends the whole connection when a socket cannot be opened
//     on the host (OpenSSH 9.2). It is not used.
//
// A forward belongs to the master, and stays when this process is killed. Its
// local socket therefore has a fixed name, and the next one first takes back
// what an earlier process may have left.
//
// Read it in this order: protocol.go (messages), control.go (a connection to the
// master), link.go (the whole), forward.go, look.go and run.go (what goes through
// it), exit.go (the master's end).
package mux
