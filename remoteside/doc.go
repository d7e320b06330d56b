// Package remoteside is the side of gpg-bridge that faces the host: it serves
// the gpg processes whose connections arrive through the forwarded socket.
//
// # The request session
//
// A session is one client's Assuan conversation. It is a table of 11 states
// and 13 events (machine.go, transitions.go) and a dozen lines that run it (step
// in actions.go). docs/states-request.md is generated from the table. In short:
//
//	Disconnected → ConnectingToAgent → Ready
//	Ready → BufferingCommand → SendingToAgent → WaitingForAgent → SendingToClient → Ready
//	SendingToClient → WaitingForAgent: a status or data line, the response goes on
//	SendingToClient → BufferingInquire → SendingToAgent → … : the agent asks back
//	any state → Error → Closing → Disconnected, or Fatal when a release fails
//
// Two goroutines serve a session, the pumps: one reads the client, one reads
// the agent, and each steps the machine itself and writes to the other side.
// There is no queue and no copy between them; a line is relayed when it is
// complete, and lines that arrived together leave together.
//
// A client may leave in any state: how far it has come in that is a small machine
// of its own (leaving.go). What ends a session is in ending.go.
//
// # The guard, rules and observers
//
// The agent decides what a restricted connection may do. The guard (guard.go)
// refuses what would harm the agent before it could decide. After it come the
// rules that the server was given (rule.go). What clients do is told to observers
// (observer.go).
//
// The package does not know how an agent is reached: it declares the Agent that
// it needs, and the caller supplies one.
package remoteside
