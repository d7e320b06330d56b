// Package linktest tests that a connection to a host keeps the promises of package link.
// Each implementation runs it against a real sshd on this machine. Tests that need a host
// that does not answer, or another kind of host, are the implementation's own.
package linktest
