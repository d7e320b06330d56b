// Package gpghome makes throw-away GnuPG homes with real keys and a real
// gpg-agent, for the tests and for the demonstration. A [Home] is a 0700 directory
// with a short path that is GNUPGHOME for everything it runs.
//
// Nothing of the user's own GnuPG is read or written, no smart card and no
// network is touched (disable-scdaemon, disable-dirmngr), and [Home.Close]
// ends the agent and removes the directory together with the socket directory
// that GnuPG keeps for it under /run/user. The pinentry is a script, so that a
// test decides what the user does: see [Home.SetPinentry].
//
// testing.go is for tests; the rest does not know of them.
package gpghome
