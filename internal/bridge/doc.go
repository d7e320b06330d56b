// Package bridge forwards one socket of a host over a link, and serves each
// connection to it from the local agent.
//
// A bridge comes up in this order, concurrently where it can:
//
//	local.go   the local agent is connected to and proved, the keys are listed
//	start.go   the host is prepared (remoteside/prepare), the socket forwarded,
//	           missing public keys imported meanwhile
//	watch.go   the path is verified from the host's side, and again every 30 s
//	close.go   however the bridge ends: the socket is removed if it is still ours
//
// limit.go and limit_gate.go bound what comes through it. abandoned.go looks after the
// prompts that clients have left open at the agent; prompt.go and prompt_*.go have it
// open none where somebody else would get what is typed, and stray.go ends those.
package bridge
