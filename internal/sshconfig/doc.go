// Package sshconfig puts lines of ours into a user's ssh_config, and takes them
// out again.
//
// The lines stand in a block of their own, between two marks, at the very top of
// the file: of a keyword's values ssh takes the first (ssh_config(5)). The block
// ends with `Host *`, so that the lines that were at the top, and held for every
// host, still do. Nothing outside of the marks is ever touched, so that a file
// without the block is, byte for byte, what it was before.
//
// A Text is a file's content, to be edited; a File is the file, with what it
// takes to exchange it safely. What a text means is for ssh to say, not for this
// package.
package sshconfig
