package assuan

import "encoding/binary"

// The handshake of a Cygwin socket, as its client sees it: send the 16 bytes
// of the secret, read the same 16 back, send credentials, read the server's
// (af_local_connect in Cygwin's fhandler/socket_local.cc; the server does the
// same with sending and reading swapped). libassuan's own emulation has 8 bytes of
// credentials instead of 12, but only for the agent's ssh socket, which we do not use.

// CygwinCredentialsSize is the size of credentials on the wire, in bytes.
const CygwinCredentialsSize = 12

// CygwinCredentials is Cygwin's struct ucred. The IDs are Cygwin's own. Neither
// side checks them; what authenticates is the secret.
type CygwinCredentials struct {
	PID      int32
	UID, GID uint32
}

// Bytes returns the credentials as they go over the wire: three little-endian
// 32-bit words.
func (c CygwinCredentials) Bytes() [CygwinCredentialsSize]byte {
	var wire [CygwinCredentialsSize]byte
	binary.LittleEndian.PutUint32(wire[0:], uint32(c.PID))
	binary.LittleEndian.PutUint32(wire[4:], c.UID)
	binary.LittleEndian.PutUint32(wire[8:], c.GID)
	return wire
}

// ParseCygwinCredentials is the inverse of Bytes.
func ParseCygwinCredentials(wire [CygwinCredentialsSize]byte) CygwinCredentials {
	return CygwinCredentials{
		PID: int32(binary.LittleEndian.Uint32(wire[0:])),
		UID: binary.LittleEndian.Uint32(wire[4:]),
		GID: binary.LittleEndian.Uint32(wire[8:]),
	}
}
