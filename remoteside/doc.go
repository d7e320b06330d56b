// Package remoteside is the side of gpg-bridge that faces the host: it answers
// the gpg processes whose connections arrive through the forwarded socket, and
// it prepares the host for that.
//
// # The request session
//
// A session is one client's Assuan conversation. It is a table of 11 states
// and 13 events (machine.go, transitions.go) and an engine of a dozen lines
// (session.go); docs/states-request.md shows the table, generated from it. In
// short:
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
// # The guard
//
// The agent decides what a restricted connection may do. The guard (guard.go)
// refuses what would harm the agent before it could decide.
//
// The package does not know how an agent is reached: it declares the Agent that
// it needs, and the caller supplies one.
package remoteside
