// Package sshsession runs gpg-bridge ssh: the user's session on a host and a bridge on the same
// connection or, with -N, the bridge and the user's own forwards alone.
//
// The process is the target's bridge unless another process of the user's is. Then it uses
// that one, and takes over when it ends: a session's connection is logged in already, perhaps
// with a password or a second factor, which no process in the background has.
package sshsession
