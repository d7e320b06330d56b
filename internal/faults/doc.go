// Package faults injects every fault into every state that a session can rest
// in, and requires of each pair what docs/faults.md says: that page is generated
// from the tables here, and differs only where a test fails.
//
// states_test.go lists the states, and how a conversation comes to each;
// faults_test.go lists the faults; outcomes_test.go says what must come of each
// pair, and how that is seen; tables_test.go holds all three to the machines' own
// tables, so that a state or a fault without an outcome is a failure.
// matrix_test.go runs the pairs through both machines, on real sockets and SSH
// channels, with a fake agent.
//
// Faults of whole processes are in scenes.go, the one part that is not a test:
// internal/e2e runs them with the built program, a real gpg-agent and a real sshd.
package faults
