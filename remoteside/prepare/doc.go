// Package prepare runs what a bridge needs on the host: one script that frees the socket's
// path, or says who uses it, and imports the public keys; one that finds out the same and
// changes nothing; one that finds out why a forward was refused; one that asks the login
// shell for its GNUPGHOME; and one that removes the socket. It runs them as commands on a
// Host, and does not speak to the agent.
package prepare
