package hostkey

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// A knownHost is a host's key as it is written to a known_hosts file.
type knownHost struct {
	name    string // as of hostName
	address string // the same for the host's address with CheckHostIP; else ""
	key     ssh.PublicKey
}

// appendKnownHost writes a host's key at the end of a known_hosts file, with its names
// hashed if hash is set (add_host_to_hostfile in hostfile.c). A missing file is created
// 0600, its directory 0700. Our processes take turns under a lock, and a key that the file
// has by then is not written again.
func appendKnownHost(ctx context.Context, file string, host knownHost, hash bool) (err error) {
	if !mayStand(host.name) {
		return fmt.Errorf("the host name %q cannot stand in a known_hosts file", host.name)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := checkWritable(file); err != nil {
		return err
	}
	file, unlock, err := lockKnownHosts(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	lines, _ := readKnownHosts(ctx, []string{file})
	if v, _ := check(keysFor(lines, lowerASCII(host.name)), host.key); v == hostKnown {
		return nil
	}
	return writeKnownHost(file, host.lines(hash))
}

// mayStand reports whether a name means itself in a known_hosts file.
func mayStand(name string) bool {
	return name != "" && !strings.ContainsAny(name, "*?!|,#@\"'\\ \t\r\n\x00")
}

// lines are the lines of a known_hosts file for the host (format_host_entry in hostfile.c):
// two if the names are hashed.
func (h knownHost) lines(hash bool) []byte {
	name := lowerASCII(h.name)
	if hash {
		salt := make([]byte, sha1.Size)
		_, _ = rand.Read(salt) // never fails (crypto/rand)
		name = hashName(name, salt)
	} else if h.address != "" {
		name += "," + h.address
	}
	lines := append([]byte(name+" "), ssh.MarshalAuthorizedKey(h.key)...)
	if hash && h.address != "" {
		lines = append(lines, knownHost{name: h.address, key: h.key}.lines(true)...)
	}
	return lines
}

// writeKnownHost appends the entry in one write, after a line feed if the file's last
// line lacks one.
func writeKnownHost(file string, entry []byte) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, info.Size()-1); err == nil && !bytes.Equal(last, []byte("\n")) {
			entry = append([]byte("\n"), entry...)
		}
	}
	_, err = f.Write(entry)
	return errors.Join(err, f.Close())
}
