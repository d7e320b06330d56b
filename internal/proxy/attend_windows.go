package proxy

import "net"

// startAttendant is for systems with ProxyUseFdpass.
func (p *Proxy) startAttendant(*net.TCPConn) {}
