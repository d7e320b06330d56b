package sshfwd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// verdict is what known_hosts says of a key that a host has shown.
type verdict int

const (
	hostUnknown verdict = iota
	hostKnown
	hostChanged // other keys are known, this one is not
	hostRevoked
)

// hostKeys is what known_hosts knows of one host.
type hostKeys struct {
	name  string     // [host]:port or host, or the HostKeyAlias
	keys  []knownKey // for name
	plain []knownKey // for the host without its port, nil if that is name or there is an alias

	principal    string   // what a certificate must be for
	caAlgorithms []string // with which an authority may sign
}

func newHostKeys(c *Config, lines []knownHostsLine) *hostKeys {
	host := lowerASCII(c.Hostname)
	h := &hostKeys{name: hostName(host, c.Port), principal: host, caAlgorithms: c.CASignatureAlgorithms}
	if c.HostKeyAlias != "" {
		h.name, h.principal = c.HostKeyAlias, c.HostKeyAlias
	} else if h.name != host {
		h.plain = keysFor(lines, host)
	}
	h.keys = keysFor(lines, h.name)
	return h
}

// with adds keys that are known by the host's name with its port.
func (h *hostKeys) with(keys []knownKey) *hostKeys {
	if len(keys) == 0 {
		return h
	}
	more := *h
	more.keys = slices.Concat(h.keys, keys)
	return &more
}

// judge is check_host_key in OpenSSH's sshconnect.c without what it asks and
// writes. known is the line that decided, if one did. A certificate that no
// authority vouches for counts as the plain key in it.
//
// One difference: a key that is revoked for the host without its port is
// revoked, where OpenSSH would ask.
func (h *hostKeys) judge(key ssh.PublicKey) (v verdict, known *knownKey, err error) {
	v, known = check(h.keys, key)
	if v == hostUnknown && h.plain != nil {
		plain, line := check(h.plain, key)
		if plain == hostKnown || plain == hostRevoked {
			v, known = plain, line
		}
	}
	cert, isCert := key.(*ssh.Certificate)
	if !isCert || v == hostRevoked {
		return v, known, nil
	}
	if v == hostKnown {
		if err = h.checkCert(cert); err == nil {
			return v, known, nil
		}
	}
	v, known, _ = h.judge(cert.Key)
	return v, known, err
}

// check is check_key_in_hostkeys in hostfile.c. A certificate is looked for
// among the authorities, a key among the other lines.
func check(keys []knownKey, key ssh.PublicKey) (v verdict, known *knownKey) {
	want, marked := key, markerNone
	cert, isCert := key.(*ssh.Certificate)
	if isCert {
		want, marked = cert.SignatureKey, markerCA
	}
	for i := range keys {
		switch k := &keys[i]; {
		case k.marker == markerRevoked && revokes(k.key, key):
			return hostRevoked, k
		case v == hostKnown || k.marker != marked:
		case sameKey(k.key, want):
			v, known = hostKnown, k
		case !isCert && v == hostUnknown:
			v, known = hostChanged, k
		}
	}
	return v, known
}

// revokes: a certificate is also revoked by its key, or its authority's
// (check_key_revoked in hostfile.c).
func revokes(revoked, key ssh.PublicKey) bool {
	if cert, ok := key.(*ssh.Certificate); ok {
		return sameKey(revoked, cert) || sameKey(revoked, cert.Key) || sameKey(revoked, cert.SignatureKey)
	}
	return sameKey(revoked, key)
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// checkCert is sshkey_cert_check_host in sshkey.c. The authority is known.
func (h *hostKeys) checkCert(cert *ssh.Certificate) error {
	if cert.CertType != ssh.HostCert {
		return fmt.Errorf("the certificate is not a host's")
	}
	if len(h.caAlgorithms) > 0 && !slices.Contains(h.caAlgorithms, cert.Signature.Format) {
		return fmt.Errorf("the certificate is signed with %q, which CASignatureAlgorithms does not allow", cert.Signature.Format)
	}
	checker := ssh.CertChecker{}
	return checker.CheckCert(h.principal, cert)
}

// order puts the host key algorithms first for which a key is known, and the
// certificates if there is an authority (order_hostkeyalgs in sshconnect2.c).
// It never leaves one out: a key of another type shall show as a changed key.
func (h *hostKeys) order(algorithms []string) []string {
	if len(algorithms) == 0 || h.knowsType(algorithms[0]) {
		return algorithms
	}
	hasCA := slices.ContainsFunc(h.keys, func(k knownKey) bool { return k.marker == markerCA })
	var first, last []string
	for _, a := range algorithms {
		if h.knowsType(a) || (hasCA && isCertAlgorithm(a)) {
			first = append(first, a)
		} else {
			last = append(last, a)
		}
	}
	return append(first, last...)
}

func (h *hostKeys) knowsType(algorithm string) bool {
	want := plainKeyType(algorithm)
	return slices.ContainsFunc(h.keys, func(k knownKey) bool { return k.marker == markerNone && k.key.Type() == want })
}

const certSuffix = "-cert-v01@openssh.com"

func isCertAlgorithm(algorithm string) bool { return strings.HasSuffix(algorithm, certSuffix) }

// plainAlgorithm is the algorithm of the signatures made with a certificate's
// key (draft-miller-ssh-cert).
func plainAlgorithm(algorithm string) string {
	plain, isCert := strings.CutSuffix(algorithm, certSuffix)
	if isCert && strings.HasPrefix(plain, "sk-") {
		return plain + "@openssh.com"
	}
	return plain
}

// plainKeyType is the format of the keys that sign with an algorithm; RSA has
// several (RFC 8332).
func plainKeyType(algorithm string) string {
	switch plain := plainAlgorithm(algorithm); plain {
	case ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512:
		return ssh.KeyAlgoRSA
	default:
		return plain
	}
}
