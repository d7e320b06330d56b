// Package pump moves bytes between our standard streams and a TCP connection, which is what
// a ProxyCommand of ssh's has to do. It knows nothing of SSH, and nothing of GPG.
//
// It copies through a buffer of its own: splice(2) between ssh's pipes and the socket was
// measured to be slower, since it wakes for every segment.
//
// Read pump.go first, then inbox.go, which holds what comes before the connection is there.
package pump
