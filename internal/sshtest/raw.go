package sshtest

import (
	"errors"
	"reflect"
	"unsafe"

	"golang.org/x/crypto/ssh"
)

// SendRaw sends one message to the client, of any content, on a connection that
// is being authenticated or is: the messages that package ssh has no way to
// forge, such as a disconnect with a text, debug messages, or answers to what
// was never asked. The first byte is the message number (RFC 4250 section
// 4.1.2).
//
// It reaches into package ssh, and is an error with a version of it that has
// another inside.
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

var errNoTransport = errors.New("sshtest: package ssh has changed inside: no transport found")

//go:linkname writePacket golang.org/x/crypto/ssh.(*handshakeTransport).writePacket
func writePacket(transport unsafe.Pointer, packet []byte) error
