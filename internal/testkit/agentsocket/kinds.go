package agentsocket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// kind is one of the two emulations: what stands in the file, and what the
// server does before the first line.
type kind struct {
	format func(port int, nonce [16]byte) []byte
	admit  func(conn net.Conn, nonce [16]byte, fault Fault) error
}

var errNonce = errors.New("agentsocket: wrong nonce")

func nativeFile(port int, nonce [16]byte) []byte {
	return append(fmt.Appendf(nil, "%d\n", port), nonce[:]...)
}

// admitNative reads 16 bytes and compares; that is all.
func admitNative(conn net.Conn, nonce [16]byte, _ Fault) error {
	return readNonce(conn, nonce)
}

// cygwinFile writes the four words as a machine with little-endian memory
// prints them with %08x.
func cygwinFile(port int, nonce [16]byte) []byte {
	var words [4]uint32
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(nonce[4*i:])
	}
	return fmt.Appendf(nil, "!<socket >%d s %08x-%08x-%08x-%08x\x00", port, words[0], words[1], words[2], words[3])
}

// admitCygwin takes the secret, sends it back, takes the client's credentials
// and sends the server's: pid, uid and gid of 32 bits each.
func admitCygwin(conn net.Conn, nonce [16]byte, fault Fault) error {
	if err := readNonce(conn, nonce); err != nil {
		return err
	}
	echo := nonce
	if fault == WrongEcho {
		echo[0] ^= 1
	}
	if _, err := conn.Write(echo[:]); err != nil {
		return err
	}
	var credentials [12]byte
	if _, err := io.ReadFull(conn, credentials[:]); err != nil {
		return err
	}
	// The server believes what it is told, if a process can have that id.
	if pid := int32(binary.LittleEndian.Uint32(credentials[:])); pid <= 0 {
		return fmt.Errorf("agentsocket: the client says that it is process %d", pid)
	}
	_, err := conn.Write(credentials[:])
	return err
}

func readNonce(conn net.Conn, want [16]byte) error {
	var got [16]byte
	if _, err := io.ReadFull(conn, got[:]); err != nil {
		return err
	}
	if got != want {
		return errNonce
	}
	return nil
}
