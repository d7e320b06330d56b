package config

import "strings"

// CertSuffix is how the name of a certificate's algorithm ends; the name of its key's
// algorithm stands before it (OpenSSH's PROTOCOL.certkeys).
const CertSuffix = "-cert-v01@openssh.com"

// PlainAlgorithm is the algorithm of the signatures made with a certificate's
// key (draft-miller-ssh-cert).
func PlainAlgorithm(algorithm string) string {
	plain, isCert := strings.CutSuffix(algorithm, CertSuffix)
	if isCert && strings.HasPrefix(plain, "sk-") {
		return plain + "@openssh.com"
	}
	return plain
}
