package hostkey

import (
	"crypto/ecdsa"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The size of the field on which the worm walks.
const (
	artWidth  = 17
	artHeight = 9
)

// randomArt is the picture of a plain key that VisualHostKey shows (fingerprint_randomart
// in OpenSSH's sshkey.c): a worm goes a step for every two bits of the fingerprint, and a
// place is drawn by how often it was there. hash is "SHA256" or "MD5".
func randomArt(key ssh.PublicKey, hash string) string {
	const symbols = " .o+=*BOX@%&#/^SE" // the last two are where it starts and ends
	digest := artDigest(key, hash)
	var field [artHeight][artWidth]int
	x, y := artWidth/2, artHeight/2
	for _, b := range digest {
		for range 4 {
			x = min(max(x+2*int(b&1)-1, 0), artWidth-1)
			y = min(max(y+int(b&2)-1, 0), artHeight-1)
			if field[y][x] < len(symbols)-3 {
				field[y][x]++
			}
			b >>= 2
		}
	}
	field[artHeight/2][artWidth/2] = len(symbols) - 2
	field[y][x] = len(symbols) - 1
	art := artBorder(fmt.Sprintf("[%s %d]", keyTypeName(key), keyBits(key))) + "\n"
	for _, row := range field {
		art += "|"
		for _, visits := range row {
			art += symbols[visits : visits+1]
		}
		art += "|\n"
	}
	return art + artBorder("["+hash+"]")
}

func artDigest(key ssh.PublicKey, hash string) []byte {
	if hash == "MD5" {
		sum := md5.Sum(key.Marshal())
		return sum[:]
	}
	sum := sha256.Sum256(key.Marshal())
	return sum[:]
}

// artBorder is a border with a title in its middle.
func artBorder(title string) string {
	left := (artWidth - len(title)) / 2
	return "+" + strings.Repeat("-", max(left, 0)) + title + strings.Repeat("-", max(artWidth-len(title)-left, 0)) + "+"
}

// keyBits is sshkey_size in sshkey.c.
func keyBits(key ssh.PublicKey) int {
	if bits, ok := RSASize(key); ok {
		return bits
	}
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := crypto.CryptoPublicKey().(*ecdsa.PublicKey); ok {
			return public.Curve.Params().BitSize
		}
	}
	return 256 // Ed25519's
}
