// Package sshkeys makes SSH keys for tests: keys of the real ssh-keygen, random keys, and
// keys that are the same in every process.
package sshkeys
