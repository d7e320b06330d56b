// Package sshconfig puts lines of ours into a user's ssh_config, and removes them
// again.
//
// The lines are in a block of their own, between two marks, at the very top of
// the file: of several values of a keyword ssh takes the first (ssh_config(5)). The
// block ends with `Host *`, so that the lines that were at the top, and applied to every
// host, still do. Nothing outside the marks is ever changed, so that without the block
// the file is, byte for byte, what it was before.
//
// A Text is a file's content, to be edited; a File is the file, which it replaces
// safely. What a text means is left to ssh.
package sshconfig
