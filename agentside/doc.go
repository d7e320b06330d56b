// Package agentside is the local side of gpg-bridge: it finds the socket of the
// user's gpg-agent, starts the agent, authenticates to it, has it prove that the
// connection is a restricted one, and sends it commands.
//
// # The agent session
//
// A Session is one Assuan conversation with the agent. It is a table of 9
// states and 10 events (machine.go) and a dozen lines that run it (step in
// session.go; the actions that connect are in session_connect.go, those that
// write in session_write.go). docs/states-agent.md is generated from the table. In
// short:
//
//	Disconnected → ConnectingToAgent → SocketConnected → SendingToAgent (nonce)
//	→ WaitingForAgent (greeting) → Ready → SendingToAgent → WaitingForAgent → Ready …
//	any state → Error → Closing → Disconnected, or Fatal when a release fails
//
// There is no goroutine that runs the machine, and no queue: whoever calls
// WriteLine or ReadLine steps it. A session has no timeout after the greeting and
// the proof: a human may be looking at pinentry.
//
// # The proof
//
// The agent decides what a restricted connection may do, and gpg-bridge relies
// on that. So no client byte reaches a connection before the agent itself has said
// that it is restricted (prove.go).
package agentside
