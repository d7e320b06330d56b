package sshfwd

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/crypto/ssh"
)

const (
	lockTimeout = 2 * time.Second
	lockRetry   = 20 * time.Millisecond
)

// appendKnownHost writes a line for a key at the end of a known_hosts file,
// with the name hashed if hash is set (add_host_to_hostfile in hostfile.c). A
// missing file is made 0600, its directory 0700. Processes of ours that do it
// at once do it one after the other, and the same line is not written twice.
func appendKnownHost(ctx context.Context, file, name string, key ssh.PublicKey, hash bool) (err error) {
	if name == "" || strings.ContainsAny(name, "*?!|,#@\"'\\ \t\r\n\x00") {
		return fmt.Errorf("the host name %q cannot stand in a known_hosts file", name)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	lock := flock.New(lockFile(file), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("cannot lock %q: %w", file, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	lines, _ := readKnownHosts([]string{file})
	if v, _ := check(keysFor(lines, name), key); v == hostKnown {
		return nil
	}
	return writeKnownHost(file, knownHostEntry(name, key, hash))
}

// lockFile is the file itself. Not on Windows, where a lock would keep out the
// write it is for.
func lockFile(file string) string {
	if runtime.GOOS == "windows" {
		return file + ".lock"
	}
	return file
}

func knownHostEntry(name string, key ssh.PublicKey, hash bool) []byte {
	name = lowerASCII(name)
	if hash {
		salt := make([]byte, sha1.Size)
		_, _ = rand.Read(salt) // never fails (crypto/rand)
		name = hashName(name, salt)
	}
	return append([]byte(name+" "), ssh.MarshalAuthorizedKey(key)...)
}

// writeKnownHost appends in one write, behind a line feed if the file's last
// line has none.
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
