// Package serve serves gpg on one target from this process. It logs in, starts a bridge on the
// connection, and publishes the bridge's status for other processes. Both a session with its
// bridge and a bridge in the background are built on it.
package serve
