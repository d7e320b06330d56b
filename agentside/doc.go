// Package agentside is the local side of gpg-bridge: it finds the gpg-agent's
// socket, starts the agent, authenticates to it, proves that the connection is
// a restricted one, and speaks with it.
//
// # The agent session
//
// A Session is one Assuan conversation with the agent. It is a table of 9
// states and 10 events (machine.go) and an engine of a dozen lines
// (session.go); docs/states-agent.md shows the table, generated from it. In short:
//
//	Disconnected → ConnectingToAgent → SocketConnected → SendingToAgent (nonce)
//	→ WaitingForAgent (greeting) → Ready → SendingToAgent → WaitingForAgent → Ready …
//	any state → Error → Closing → Disconnected, or Fatal when a release fails
//
// The sequence follows the protocol, so there is no loop goroutine and no
// queue: whoever calls WriteLine or ReadLine steps the machine. A session has
// no timeout once the agent has greeted: a human may be looking at pinentry.
//
// # The proof
//
// The agent decides what a restricted connection may do, and gpg-bridge relies
// on that; so no client byte reaches a connection before the agent has said
// itself that it is restricted (prove.go).
package agentside
