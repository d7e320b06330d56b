// Package sshflags knows the command line of ssh(1): what its flags are, how they are read, and
// what gpg-bridge ssh does with each. docs/ssh-flags.md is generated from the table.
package sshflags
