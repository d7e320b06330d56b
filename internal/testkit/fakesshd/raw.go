package fakesshd

import (
	"errors"
	"reflect"
	"unsafe"

	"golang.org/x/crypto/ssh"
)

// SendRaw sends the client one message of any content, on a connection that is authenticated
// or being authenticated: one that package ssh cannot send, such as a disconnect with a text, a
// debug message, or the answer to a request that was never made. The first byte is the message
// number (RFC 4250 section 4.1.2).
//
// It uses unexported fields of package ssh, and returns an error for a version that has other
// ones.
func SendRaw(conn ssh.ConnMetadata, message []byte) error {
	if c, ok := conn.(*Conn); ok {
		conn = c.ServerConn
	}
	if c, ok := conn.(*ssh.ServerConn); ok {
		conn = c.Conn
	}
	v := reflect.ValueOf(conn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return errNoTransport
	}
	field := v.Elem().FieldByName("transport")
	if field.Kind() != reflect.Interface {
		return errNoTransport
	}
	transport := field.Elem()
	if transport.Kind() != reflect.Pointer || transport.Type().String() != "*ssh.handshakeTransport" || transport.IsNil() {
		return errNoTransport
	}
	return writePacket(transport.UnsafePointer(), message)
}

var errNoTransport = errors.New("fakesshd: package ssh has changed inside: no transport found")

//go:linkname writePacket golang.org/x/crypto/ssh.(*handshakeTransport).writePacket
func writePacket(transport unsafe.Pointer, packet []byte) error
