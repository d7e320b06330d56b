// Package pump is what a ProxyCommand of ssh's has to be: bytes between our
// standard streams and a TCP connection, or the connection itself, handed to
// ssh. It knows nothing of SSH, and nothing of GPG.
//
// It copies through a buffer of its own: splice(2) between ssh's pipes and the
// socket was measured to be slower, being woken for every segment.
//
// Read it in this order: pump.go, inbox.go (what comes before the connection is
// there), fdpass_unix.go.
package pump
