package hostkey

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"golang.org/x/crypto/ssh"
)

// Key revocation lists: OpenSSH's PROTOCOL.krl, and its krl.c for what that leaves
// open. Whatever is not understood is an error.

const krlMagic = "SSHKRL\n\x00"

const (
	krlCertificates = 1
	krlKeys         = 2
	krlSHA1         = 3
	krlSHA256       = 5
	krlExtension    = 255

	krlSerialList    = 0x20
	krlSerialRange   = 0x21
	krlSerialBitmap  = 0x22
	krlKeyID         = 0x23
	krlCertExtension = 0x39
)

var errKRL = errors.New("malformed")

// krl is a list of revoked keys and certificates.
type krl struct {
	blobs map[string]bool // public keys, and hashes of some; by their lengths they are never confused
	certs []*krlCerts
}

// krlCerts are revoked certificates of one authority.
type krlCerts struct {
	authority []byte // empty for every authority
	ids       map[string]bool
	ranges    []krlRange
	bitmaps   []krlBitmap
}

type krlRange struct{ from, to uint64 }

// krlBitmap revokes the serial offset+N if bit N is set.
type krlBitmap struct {
	offset uint64
	bits   *big.Int
}

func parseKRL(data []byte) (*krl, error) {
	k := &krl{blobs: map[string]bool{}}
	r := &krlReader{data: data[len(krlMagic):]}
	if version := r.uint32(); version != 1 {
		return nil, fmt.Errorf("format version %d", version)
	}
	r.skip(3 * 8)           // version, date, flags
	_, _ = r.str(), r.str() // reserved, comment
	for r.more() {
		kind := r.byte()
		if err := k.section(kind, &krlReader{data: r.str()}); err != nil {
			return nil, err
		}
	}
	return k, r.err
}

func (k *krl) section(kind byte, r *krlReader) error {
	switch kind {
	case krlCertificates:
		return k.certificates(r)
	case krlKeys, krlSHA1, krlSHA256:
		want := map[byte]int{krlSHA1: sha1.Size, krlSHA256: sha256.Size}[kind]
		for r.more() {
			blob := r.str()
			if want != 0 && len(blob) != want {
				return errKRL
			}
			k.blobs[string(blob)] = true
		}
		return r.err
	case krlExtension:
		return r.extension()
	}
	return fmt.Errorf("unknown section %d", kind)
}

func (k *krl) certificates(r *krlReader) error {
	certs := &krlCerts{authority: r.str(), ids: map[string]bool{}}
	r.str() // reserved
	k.certs = append(k.certs, certs)
	for r.more() {
		kind := r.byte()
		if err := certs.section(kind, &krlReader{data: r.str()}); err != nil {
			return err
		}
	}
	return r.err
}

func (c *krlCerts) section(kind byte, r *krlReader) error {
	switch kind {
	case krlSerialList:
		for r.more() {
			serial := r.uint64()
			c.revoke(serial, serial, r)
		}
	case krlSerialRange:
		c.revoke(r.uint64(), r.uint64(), r)
	case krlSerialBitmap:
		offset, bits := r.uint64(), new(big.Int).SetBytes(r.str())
		if n := uint64(bits.BitLen()); n > 0 && offset > math.MaxUint64-(n-1) || offset == 0 && bits.Bit(0) == 1 {
			return errKRL
		}
		c.bitmaps = append(c.bitmaps, krlBitmap{offset, bits})
	case krlKeyID:
		for r.more() {
			c.ids[string(r.str())] = true
		}
	case krlCertExtension:
		return r.extension()
	default:
		return fmt.Errorf("unknown certificate section %d", kind)
	}
	if r.more() {
		return errKRL
	}
	return r.err
}

// revoke adds a range of serials. The list is malformed if the range has 0 in it, or is
// empty (ssh_krl_revoke_cert_by_serial_range).
func (c *krlCerts) revoke(from, to uint64, r *krlReader) {
	if r.err == nil && (from == 0 || from > to) {
		r.err = errKRL
	}
	c.ranges = append(c.ranges, krlRange{from, to})
}

// revokes reports whether the list has the key itself or a hash of it, or, of a
// certificate, the certificate or its authority (ssh_krl_check_key).
func (k *krl) revokes(key ssh.PublicKey) bool {
	if k.hasKey(Plain(key)) {
		return true
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return false
	}
	authority := cert.SignatureKey
	return k.hasKey(Plain(authority)) || slices.ContainsFunc(k.certs, func(c *krlCerts) bool {
		return (len(c.authority) == 0 || string(c.authority) == string(authority.Marshal())) && c.has(cert)
	})
}

func (k *krl) hasKey(key ssh.PublicKey) bool {
	blob := key.Marshal()
	short, long := sha1.Sum(blob), sha256.Sum256(blob)
	return k.blobs[string(blob)] || k.blobs[string(short[:])] || k.blobs[string(long[:])]
}

// has reports whether a certificate is listed, by its ID or by its serial; a serial of 0
// means that it has none.
func (c *krlCerts) has(cert *ssh.Certificate) bool {
	serial := cert.Serial
	if c.ids[cert.KeyId] {
		return true
	}
	return serial != 0 && (slices.ContainsFunc(c.ranges, func(r krlRange) bool { return r.from <= serial && serial <= r.to }) ||
		slices.ContainsFunc(c.bitmaps, func(b krlBitmap) bool {
			return serial >= b.offset && serial-b.offset < uint64(b.bits.BitLen()) && b.bits.Bit(int(serial-b.offset)) == 1
		}))
}

// krlReader reads SSH's data types (RFC 4251, 5). The first error is kept.
type krlReader struct {
	data []byte
	err  error
}

func (r *krlReader) more() bool { return r.err == nil && len(r.data) > 0 }

func (r *krlReader) skip(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.data) {
		r.err, r.data = errKRL, nil
		return make([]byte, min(max(n, 0), 8)) // enough for a number
	}
	head := r.data[:n]
	r.data = r.data[n:]
	return head
}

func (r *krlReader) byte() byte     { return r.skip(1)[0] }
func (r *krlReader) uint32() uint32 { return binary.BigEndian.Uint32(r.skip(4)) }
func (r *krlReader) uint64() uint64 { return binary.BigEndian.Uint64(r.skip(8)) }

func (r *krlReader) str() []byte {
	n := r.uint32()
	if r.err != nil || uint64(n) > uint64(len(r.data)) {
		r.err, r.data = errKRL, nil
		return nil
	}
	return r.skip(int(n))
}

// extension skips what is not critical.
func (r *krlReader) extension() error {
	name, critical := r.str(), r.byte()
	if r.err == nil && critical != 0 {
		return fmt.Errorf("unknown critical extension %q", name)
	}
	return r.err
}
