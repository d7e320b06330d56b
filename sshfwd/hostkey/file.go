package hostkey

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// The format is that of sshd(8), SSH_KNOWN_HOSTS FILE FORMAT. Any content is read as
// OpenSSH's hostfile.c reads it: a line that it skips is skipped, where
// x/crypto/ssh/knownhosts refuses the whole file.

type marker int

const (
	markerNone marker = iota
	markerCA
	markerRevoked
)

// knownHostsLine is one line, its names and its key not parsed yet.
type knownHostsLine struct {
	file   string
	number int // from 1
	marker marker
	names  string
	key    string // type, base64 and comment
}

// knownKey is a key from a line whose names match a host.
type knownKey struct {
	file   string
	number int
	marker marker
	key    ssh.PublicKey
}

// readKnownHosts reads the files in order. A file that is missing or cannot be
// read counts as empty (load_hostkeys in hostfile.c); unreadable has the errors of
// those that cannot be read, for the log. A FIFO is waited for until ctx ends.
func readKnownHosts(ctx context.Context, files []string) (lines []knownHostsLine, unreadable []error) {
	for _, file := range files {
		data, err := config.ReadUserFile(ctx, file)
		if err != nil {
			if !os.IsNotExist(err) {
				unreadable = append(unreadable, err)
			}
			continue
		}
		lines = append(lines, parseKnownHosts(data, file)...)
	}
	return lines, unreadable
}

func parseKnownHosts(data []byte, file string) (lines []knownHostsLine) {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if l, ok := parseKnownHostsLine(string(line)); ok {
			l.file, l.number = file, number
			lines = append(lines, l)
		}
	}
	return lines
}

func parseKnownHostsLine(line string) (l knownHostsLine, ok bool) {
	line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), "\x00") // C strings end there
	line = strings.TrimLeft(line, " \t")
	if line == "" || line[0] == '#' {
		return l, false
	}
	l.marker, line, ok = cutMarker(line)
	if !ok {
		return l, false
	}
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		return l, false
	}
	l.names, l.key = line[:end], strings.TrimLeft(line[end:], " \t")
	return l, l.key != "" && l.key[0] != '#'
}

// cutMarker is check_markers in hostfile.c: one marker at most, ended by the
// first space of the line, or the first tab if there is no space.
func cutMarker(line string) (m marker, rest string, ok bool) {
	for strings.HasPrefix(line, "@") {
		end := strings.IndexByte(line, ' ')
		if end < 0 {
			end = strings.IndexByte(line, '\t')
		}
		if m != markerNone || end < 0 {
			return m, "", false
		}
		switch line[:end] {
		case "@cert-authority":
			m = markerCA
		case "@revoked":
			m = markerRevoked
		default:
			return m, "", false
		}
		line = strings.TrimLeft(line[end:], " \t")
	}
	return m, line, true
}

// keysFor returns the keys of the lines that match a name: a host in lower case,
// or [host]:port (hostName). A line with a bad key is skipped.
func keysFor(lines []knownHostsLine, name string) []knownKey {
	var keys []knownKey
	for _, l := range lines {
		if !matchNames(name, l.names) {
			continue
		}
		if key, ok := parseKnownKey(l.key); ok {
			keys = append(keys, knownKey{l.file, l.number, l.marker, key})
		}
	}
	return keys
}

// matchNames is match_maybe_hashed in hostfile.c.
func matchNames(name, names string) bool {
	if strings.HasPrefix(names, "|") {
		salt, ok := hashSalt(names)
		return ok && hashName(name, salt) == names
	}
	return matchPatternList(lowerASCII(name), names)
}

// hashSalt reads the salt of |1|salt|hash (extract_salt in hostfile.c).
func hashSalt(names string) ([]byte, bool) {
	rest, ok := strings.CutPrefix(names, "|1|")
	encoded, _, delimited := strings.Cut(rest, "|")
	salt, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return salt, ok && delimited && err == nil && len(salt) == sha1.Size
}

// hashName is host_hash in hostfile.c.
func hashName(name string, salt []byte) string {
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	encode := base64.StdEncoding.EncodeToString
	return "|1|" + encode(salt) + "|" + encode(mac.Sum(nil))
}

// matchPatternList is match_pattern_list in OpenSSH's match.c: patterns separated by
// commas. A negated one that matches decides, wherever it stands.
func matchPatternList(name, list string) bool {
	const tooLong = 1023 // for the buffer in match.c
	found := false
	for pattern := range strings.SplitSeq(list, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if len(pattern) >= tooLong {
			return false
		}
		if !config.Match(name, lowerASCII(pattern)) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

// lowerASCII lowers the letters A to Z only, as ssh does. strings.ToLower would also
// replace bytes that are not UTF-8, and so make one of two different names.
func lowerASCII(s string) string {
	lower := []byte(s)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c - 'A' + 'a'
		}
	}
	return string(lower)
}

// parseKnownKey is sshkey_read in OpenSSH's sshkey.c: a type and the base64 of a
// key of that type.
func parseKnownKey(text string) (ssh.PublicKey, bool) {
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		return nil, false
	}
	encoded := strings.TrimLeft(text[end:], " \t")
	if space := strings.IndexAny(encoded, " \t"); space >= 0 {
		encoded = encoded[:space]
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, false
	}
	key, err := ssh.ParsePublicKey(blob)
	return key, err == nil && typeNamed(text[:end], key.Type())
}

// typeNamed reports whether name stands for keyType in OpenSSH: the names of RSA's
// signatures also stand for an RSA key (sshkey_type_from_name in sshkey.c).
func typeNamed(name, keyType string) bool {
	return name == keyType || keyType == ssh.KeyAlgoRSA && plainKeyType(name) == ssh.KeyAlgoRSA && !isCertAlgorithm(name)
}

// hostName is the name of a host in known_hosts (put_host_port in misc.c).
func hostName(host string, port int) string {
	if port == 0 || port == 22 {
		return host
	}
	return "[" + host + "]:" + strconv.Itoa(port)
}
