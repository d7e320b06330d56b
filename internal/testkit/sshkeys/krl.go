package sshkeys

import (
	"encoding/binary"
	"slices"
)

// KRLOfID returns a key revocation list that revokes a key ID for every authority, which
// ssh-keygen cannot make.
func KRLOfID(id string) []byte {
	str := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	const certificates, keyIDs = 1, 0x23 // sections (PROTOCOL.krl)
	section := slices.Concat(str(nil), str(nil), []byte{keyIDs}, str(str([]byte(id))))
	return slices.Concat([]byte("SSHKRL\n\x00\x00\x00\x00\x01"), make([]byte, 3*8), str(nil), str(nil), []byte{certificates}, str(section))
}
