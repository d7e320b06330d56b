//go:build unix

package wire

import (
	"net"

	"golang.org/x/sys/unix"
)

// SetTOS sets the TOS field of IPv4, or the traffic class of IPv6, of what is sent from now on
// (set_sock_tos in OpenSSH's misc.c). It does nothing for a proxy's connection. w may be nil.
func (w *Conn) SetTOS(tos int) error {
	if w == nil {
		return nil
	}
	tcp, ok := w.Conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	level, option := unix.IPPROTO_IP, unix.IP_TOS
	if addr, ok := tcp.LocalAddr().(*net.TCPAddr); ok && addr.IP.To4() == nil {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	if failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, tos) }); failed != nil {
		return failed
	}
	return err
}
