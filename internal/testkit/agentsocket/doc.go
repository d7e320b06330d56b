// Package agentsocket puts the servers' halves of the two emulated sockets in
// front of a real gpg-agent, so that they can be tested where there is no
// Windows: libassuan's own, a file with a TCP port and a nonce ([StartNative]),
// and that of Cygwin and MSYS ([StartCygwin]). It can also misbehave as real
// ones do: see [Fault].
//
// It shares no code with the client's half: otherwise a mistake in the format would be made on
// both sides, and not be noticed.
package agentsocket
