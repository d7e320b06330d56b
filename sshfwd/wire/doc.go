// Package wire is the connection below SSH: it writes packets in batches, has small ones
// acknowledged at once, limits what a server can make us hold, and keeps what the first key
// exchange showed in the clear.
package wire
