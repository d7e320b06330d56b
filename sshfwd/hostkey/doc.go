// Package hostkey decides whether the host that answers is the one that was meant: by
// known_hosts, certificates and revocation lists, and where these do not tell, by asking
// the user.
package hostkey
