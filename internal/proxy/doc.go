// Package proxy connects ssh to a host as its ProxyCommand, and holds a lease of the host's
// bridge in the background while ssh is connected. The connection is the one that ssh would
// make itself, and nothing about the bridge can delay or break it.
//
// Read proxy.go first. The connection is made in one of three ways: its bytes are copied
// (package pump), it is handed over to ssh (fdpass.go), or another command makes it
// (command.go). lease.go is the bridge, and report.go what the user is told of it.
package proxy
