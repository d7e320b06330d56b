package env

import "net"

// TCPAddr returns the address of a port on this machine.
func TCPAddr(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
