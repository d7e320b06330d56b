// Package bridge ties the four parts of gpg-bridge into one: a forwarded socket
// on one host with all its sessions, each served from the local agent.
//
// A bridge comes up in this order, and what can overlap does:
//
//	local.go   the local agent is connected to and proved, the keys are listed
//	start.go   the host is prepared (remoteside.Prepare), the socket forwarded,
//	           missing public keys imported meanwhile
//	watch.go   the path is verified from the host's side, and again every 30 s
//	close.go   on every way out: if the path is still ours, it is removed
//
// limit.go and limit_gate.go bound what comes through it.
package bridge
