package wire

import (
	"bytes"
	"errors"
	"net"
)

// What a server may send before its version string (RFC 4253, 4.2), with OpenSSH's
// limits: so many lines, of so many bytes each (SSH_MAX_PRE_BANNER_LINES and
// SSH_MAX_BANNER_LEN in kex.h).
const (
	maxLinesBefore = 1024
	maxLineBefore  = 8192
)

var (
	errNoVersion  = errors.New("the server has sent too much before its SSH version")
	errBadVersion = errors.New("the server has sent what no SSH server does before its version")
)

// A versionConn is the connection below SSH without the lines that the server sends
// before its version string: package ssh takes no more than 255 bytes of them.
type versionConn struct {
	net.Conn
	found bool   // the version string comes next, or has been read
	rest  []byte // received, and not yet read
	lines int    // dropped
}

// SkipToVersion is the connection without the lines that the server sends before its
// version string.
func SkipToVersion(conn net.Conn) net.Conn { return &versionConn{Conn: conn} }

// Read reads from the version string on. One goroutine may read.
func (v *versionConn) Read(p []byte) (int, error) {
	for !v.found {
		if err := v.skip(); err != nil {
			return 0, err
		}
	}
	if len(v.rest) > 0 {
		n := copy(p, v.rest)
		v.rest = v.rest[n:]
		return n, nil
	}
	return v.Conn.Read(p)
}

// skip drops the lines that are there, or receives more.
func (v *versionConn) skip() error {
	for {
		line, after, whole := bytes.Cut(v.rest, []byte("\n"))
		switch {
		case bytes.HasPrefix(v.rest, []byte("SSH-")):
			v.found = true
			return nil
		case len(line) > maxLineBefore, v.lines >= maxLinesBefore:
			return errNoVersion
		case !whole:
			return v.receive()
		case bytes.ContainsAny(bytes.TrimSuffix(line, []byte("\r")), "\r\x00"):
			return errBadVersion
		}
		v.rest = after
		v.lines++
	}
}

func (v *versionConn) receive() error {
	buf := make([]byte, 4096)
	n, err := v.Conn.Read(buf)
	v.rest = append(v.rest, buf[:n]...)
	if n > 0 {
		return nil
	}
	return err
}
