// Package mux makes a bridge's link of an existing OpenSSH connection, that of a
// ControlMaster (ssh_config(5)), over its control socket. It needs no second login, and
// so is the only way to a host that wants more than a key.
//
// The protocol is OpenSSH's PROTOCOL.mux, version 4; what that leaves open is done as in
// OpenSSH's mux.c. No ssh is started, which might fall back to a connection of its own.
//
// The master is the user's, and is to behave as if we were not there:
//
//   - A control connection counts as a session (channel_still_open in
//     channels.c): while one is open, the user's ssh does not end with their
//     shell. So one is opened only for a request, and it is the master's process
//     that shows its end.
//   - Whatever is opened through the master restarts its ControlPersist. A
//     caller that looks at the socket from time to time must let that run out.
//   - The master's proxy mode ends the whole connection when a socket cannot be
//     opened on the host (OpenSSH 9.2). It is not used.
//
// A forward belongs to the master, and stays when this process is killed. Its
// local socket therefore has a fixed name, and the next process first cancels
// the forward that an earlier one may have left.
//
// Read it in this order: protocol.go (messages), control.go (a connection to the
// master), link.go (the whole), forward.go, dial.go and run.go (what goes through
// it).
package mux
