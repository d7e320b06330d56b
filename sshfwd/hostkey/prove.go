package hostkey

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// proveRequest is also the name of the request to the host.
const proveRequest = "hostkeys-prove-00@openssh.com"

var errNoProof = errors.New("the host does not prove that it has the private halves of its keys")

// ProveRequest is the name and the payload of the global request by which the host is to
// prove that it has New's keys (OpenSSH's PROTOCOL, section 2.5).
func (u *Update) ProveRequest() (name string, payload []byte) {
	for _, key := range u.New() {
		payload = appendString(payload, key.Marshal())
	}
	return proveRequest, payload
}

// Prove checks the host's answer to ProveRequest: a signature by each of the keys
// (client_global_hostkeys_prove_confirm in clientloop.c). algorithm is the host key
// algorithm of the key exchange. An RSA key that has signed with SHA-1 is left out; any
// other signature that is wrong fails the whole.
func (u *Update) Prove(sessionID []byte, algorithm string, answer []byte) error {
	for _, key := range u.keys {
		if key.known.any() {
			continue
		}
		blob, rest, ok := cutString(answer)
		if !ok {
			return fmt.Errorf("%w: %w", errNoProof, errTruncated)
		}
		answer = rest
		var signature ssh.Signature
		if err := ssh.Unmarshal(blob, &signature); err != nil {
			return fmt.Errorf("%w: the %s key's signature is malformed", errNoProof, keyTypeName(key))
		}
		if isRSA(key) && !slices.Contains(rsaAlgorithms(algorithm), signature.Format) {
			if plainKeyType(algorithm) == ssh.KeyAlgoRSA {
				return fmt.Errorf("%w: the RSA key signed with %.40q", errNoProof, signature.Format)
			}
			continue
		}
		if err := key.Verify(proofData(sessionID, key), &signature); err != nil {
			return fmt.Errorf("%w: the %s key's signature is wrong", errNoProof, keyTypeName(key))
		}
		key.proved = true
	}
	if len(answer) > 0 {
		return fmt.Errorf("%w: it sent more than signatures", errNoProof)
	}
	return nil
}

// proofData is what the host signs.
func proofData(sessionID []byte, key ssh.PublicKey) []byte {
	data := appendString(nil, []byte(proveRequest))
	data = appendString(data, sessionID)
	return appendString(data, key.Marshal())
}

func isRSA(key ssh.PublicKey) bool { return key.Type() == ssh.KeyAlgoRSA }

// rsaAlgorithms are those by which an RSA key may prove itself: that of the key exchange if
// it was RSA's, else those with SHA-2 (HOSTKEY_PROOF_RSA_ALGS).
func rsaAlgorithms(exchange string) []string {
	if plainKeyType(exchange) == ssh.KeyAlgoRSA {
		return []string{config.PlainAlgorithm(exchange)}
	}
	return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
}
