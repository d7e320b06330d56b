// Package e2e tests the built program as a user runs it: a real gpg-agent with
// a throw-away GNUPGHOME is the laptop, a real account behind a real sshd with
// stock options is the host, and gpg-bridge is a process between them.
//
// The package has tests only. Each file is one concern; helpers_test.go has the
// laptop and the host, process_test.go the program, assuan_test.go the ends of
// a socket. What each waits for is a condition, and what ends a wait that would
// last for ever is a time far beyond what a slow machine needs.
package e2e
