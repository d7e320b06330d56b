package hostkey

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
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
// missing file is created 0600, its directory 0700. Our processes take turns under a
// lock, and a key that the file has by then is not written again.
func appendKnownHost(ctx context.Context, file, name string, key ssh.PublicKey, hash bool) (err error) {
	if name == "" || strings.ContainsAny(name, "*?!|,#@\"'\\ \t\r\n\x00") {
		return fmt.Errorf("the host name %q cannot stand in a known_hosts file", name)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(file); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return fmt.Errorf("%q is a FIFO", file) // opening it may block for ever
	}
	lock := flock.New(lockFile(file), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("cannot lock %q: %w", file, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	lines, _ := readKnownHosts(ctx, []string{file})
	if v, _ := check(keysFor(lines, lowerASCII(name)), key); v == hostKnown {
		return nil
	}
	return writeKnownHost(file, knownHostEntry(name, key, hash))
}

// lockFile is the file itself, but one of its own on Windows, where a lock on the file
// would block our own write.
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
