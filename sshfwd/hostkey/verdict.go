package hostkey

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// verdict is what known_hosts says about a key that a host has shown. But for
// hostUnknown, a greater one is stricter.
type verdict int

const (
	hostUnknown verdict = iota
	hostKnown
	hostChanged // other keys are known, this one is not
	hostRevoked
)

// hostKeys is what known_hosts knows of one host.
type hostKeys struct {
	name        string     // [host]:port or host, or the HostKeyAlias
	keys        []knownKey // for name
	withoutPort []knownKey // for the host without its port, nil if that is name or there is an alias

	principal    string   // what a certificate must be for
	caAlgorithms []string // with which an authority may sign

	// files is the same for each file alone, if it is in doubt which of them ssh reads;
	// else nil.
	files []*hostKeys
}

func newHostKeys(c *config.Config, lines []knownHostsLine) *hostKeys {
	host := lowerASCII(c.Hostname)
	h := &hostKeys{name: hostName(host, c.Port), principal: host, caAlgorithms: c.CASignatureAlgorithms}
	if c.HostKeyAlias != "" {
		h.name, h.principal = c.HostKeyAlias, c.HostKeyAlias
	} else if h.name != host {
		h.withoutPort = keysFor(lines, host)
	}
	h.keys = keysFor(lines, h.name)
	if c.KnownHostsInDoubt {
		alone := *c
		alone.KnownHostsInDoubt = false
		for _, lines := range groupByFile(lines, func(l knownHostsLine) string { return l.file }) {
			h.files = append(h.files, newHostKeys(&alone, lines))
		}
	}
	return h
}

// groupByFile splits what was read from several files into what each of them has.
func groupByFile[T any](all []T, file func(T) string) (files [][]T) {
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(t T) bool { return file(t) != file(all[0]) })
		if n < 0 {
			n = len(all)
		}
		files, all = append(files, all[:n]), all[n:]
	}
	return files
}

// with is h with more keys, which are known for h.name.
func (h *hostKeys) with(keys []knownKey) *hostKeys {
	if len(keys) == 0 {
		return h
	}
	more := *h
	more.keys = slices.Concat(h.keys, keys)
	if h.files != nil {
		command := *h
		command.keys, command.withoutPort, command.files = keys, nil, nil
		more.files = append(slices.Clone(h.files), &command)
	}
	return &more
}

// judge is check_host_key in OpenSSH's sshconnect.c without its questions and without
// writing. known is the line that decided, if one did; err is why a certificate was not
// accepted. A certificate that no authority vouches for counts as the plain key in it.
//
// If it is in doubt which files ssh reads, the strictest verdict of a single file counts:
// whichever of them ssh reads, its verdict is no stricter.
//
// One difference: a key that is revoked for the host without its port is
// revoked here, where OpenSSH would ask.
func (h *hostKeys) judge(key ssh.PublicKey) (v verdict, known *knownKey, err error) {
	if h.files != nil {
		return h.strictest(key)
	}
	v, known = check(h.keys, key)
	if v == hostUnknown && h.withoutPort != nil {
		other, line := check(h.withoutPort, key)
		if other == hostKnown || other == hostRevoked {
			v, known = other, line
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

// strictest is the strictest verdict of a single file.
func (h *hostKeys) strictest(key ssh.PublicKey) (v verdict, known *knownKey, err error) {
	for _, file := range h.files {
		if one, line, why := file.judge(key); one > v || v == hostUnknown {
			v, known, err = one, line, why
		}
	}
	return v, known, err
}

// check is check_key_in_hostkeys in hostfile.c. A certificate is looked up
// among the authorities, a plain key among the other lines.
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
		case Same(k.key, want):
			v, known = hostKnown, k
		case !isCert && v == hostUnknown:
			v, known = hostChanged, k
		}
	}
	return v, known
}

// checkEachFile is the strictest verdict of check on the keys of a single file.
func checkEachFile(keys []knownKey, key ssh.PublicKey) (v verdict, known *knownKey) {
	for _, file := range groupByFile(keys, func(k knownKey) string { return k.file }) {
		if one, line := check(file, key); one > v {
			v, known = one, line
		}
	}
	return v, known
}

// revokes reports whether a revoked key revokes key. A certificate is also revoked by the
// key in it and by its authority's (check_key_revoked in hostfile.c).
func revokes(revoked, key ssh.PublicKey) bool {
	if cert, ok := key.(*ssh.Certificate); ok {
		return Same(revoked, cert) || Same(revoked, cert.Key) || Same(revoked, cert.SignatureKey)
	}
	return Same(revoked, key)
}

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

// order puts those host key algorithms first for which a key is known, and those of
// certificates if an authority is known (order_hostkeyalgs in sshconnect2.c). It keeps
// all others, so that a key of another type is noticed as a changed key.
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

// knowsType reports whether a key is known for an algorithm. It is false if the first such
// key is revoked, so that the host is asked for another type
// (check_hostkeys_by_key_or_type in hostfile.c); the revoked key stays refused.
func (h *hostKeys) knowsType(algorithm string) bool {
	want := plainKeyType(algorithm)
	i := slices.IndexFunc(h.keys, func(k knownKey) bool { return k.marker == markerNone && k.key.Type() == want })
	return i >= 0 && !slices.ContainsFunc(h.keys, func(k knownKey) bool {
		return k.marker == markerRevoked && revokes(k.key, h.keys[i].key)
	})
}

func isCertAlgorithm(algorithm string) bool { return strings.HasSuffix(algorithm, config.CertSuffix) }

// plainKeyType is the type of the keys that sign with an algorithm; RSA keys sign with
// several (RFC 8332).
func plainKeyType(algorithm string) string {
	switch plain := config.PlainAlgorithm(algorithm); plain {
	case ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512:
		return ssh.KeyAlgoRSA
	default:
		return plain
	}
}
