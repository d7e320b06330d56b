// Package login tells a server who we are: which keys from files and from the ssh-agent are
// offered, in which order, and what the user is asked (RFC 4252, RFC 4256).
package login
