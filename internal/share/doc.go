// Package share makes the processes of one user agree on who is the bridge of a
// target, and lets the others use it, watch it and end it.
//
// A target has an ID. Whoever holds the ID's lock, which the system releases
// when the process ends, is its [Holder]; it listens on a control socket beside
// the lock, in a directory that only the user can enter. A [Lease] is a connection to
// that socket, and lives as long as the process that has it: there is no list of
// process IDs that could be out of date, and nothing to clean up after a crash.
//
//	Ensure ── Lease ──► Holder     somebody is the bridge: use it
//	   └───── start ──► Hold       nobody is: start one, then use it
//
// The protocol is lines of JSON, a request and then Statuses: docs/control.md.
//
// Read it in this order: status.go (the messages), dir.go (the directory), holder.go
// (the bridge's end), watch.go (its files), serve.go (its connections), client.go
// and lease.go (the others' end), silent.go (a bridge that does not answer).
package share
