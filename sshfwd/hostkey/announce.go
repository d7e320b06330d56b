package hostkey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// maxAnnounced is how many keys a host may say it has. ssh has no limit but that of a
// packet; sshd has one key of each type.
const maxAnnounced = 32

var errTruncated = errors.New("truncated")

// parseAnnouncement reads the payload of hostkeys-00@openssh.com (OpenSSH's PROTOCOL,
// section 2.5; client_input_hostkeys in clientloop.c): the keys, in their order, that
// HostKeyAlgorithms allows. Certificates and what is no key that we know are left out. A key
// that is there twice, or too many keys, is an error.
func parseAnnouncement(payload []byte, algorithms []string) (keys []ssh.PublicKey, err error) {
	for count := 0; len(payload) > 0; count++ {
		blob, rest, ok := cutString(payload)
		if !ok {
			return nil, errTruncated
		}
		if payload = rest; count == maxAnnounced {
			return nil, fmt.Errorf("more than %d keys", maxAnnounced)
		}
		key, err := ssh.ParsePublicKey(blob)
		if err != nil || !allows(algorithms, key) {
			continue
		}
		if indexOf(keys, key) >= 0 {
			return nil, fmt.Errorf("a %s key twice", keyTypeName(key))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// cutString cuts a string off SSH's data (RFC 4251 section 5).
func cutString(data []byte) (s, rest []byte, ok bool) {
	if len(data) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(data)
	if data = data[4:]; uint64(n) > uint64(len(data)) {
		return nil, nil, false
	}
	return data[:n], data[n:], true
}

// appendString appends a string in SSH's format.
func appendString(data, s []byte) []byte {
	return append(binary.BigEndian.AppendUint32(data, uint32(len(s))), s...)
}

// allows reports whether a host may prove itself by such a key
// (hostkey_accepted_by_hostkeyalgs in sshconnect.c), which is not for certificates here. An
// empty list is ssh's own.
func allows(algorithms []string, key ssh.PublicKey) bool {
	if algorithms == nil {
		algorithms = config.DefaultAlgorithms("hostkeyalgorithms")
	}
	if _, isCert := key.(*ssh.Certificate); isCert {
		return false
	}
	return slices.ContainsFunc(algorithms, func(a string) bool {
		return !isCertAlgorithm(a) && plainKeyType(a) == key.Type()
	})
}

func indexOf(keys []ssh.PublicKey, key ssh.PublicKey) int {
	return slices.IndexFunc(keys, func(k ssh.PublicKey) bool { return Same(k, key) })
}
