// Package link declares what a bridge needs of a connection to a host, whichever program
// holds the connection: this one (sshfwd's Client), or the user's own ssh
// (internal/link/mux). A third kind would be a program on the host that serves the link
// over its standard input and output.
//
// An implementation keeps the promises in the comments of [Link], [Forward] and [Conn], and
// passes the tests of internal/testkit/linktest against a real sshd. Where an error of this
// package fits, it returns that, possibly wrapped; other errors are its own. [Hopeless] and
// [NothingRan] answer a caller's questions about any link's errors.
//
// Nothing stands between a Conn and its user: it is read and written in the user's
// goroutines, with no copy, lock or allocation for each line.
package link
