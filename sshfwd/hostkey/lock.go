package hostkey

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockTimeout = 2 * time.Second
	lockRetry   = 20 * time.Millisecond
)

// lockKnownHosts makes our processes take turns at writing a known_hosts file, which it
// creates, 0600, if it is missing. real is the file without symbolic links. unlock must be
// called. ssh takes no lock.
func lockKnownHosts(ctx context.Context, file string) (real string, unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		if real, err = filepath.EvalSymlinks(file); err != nil {
			real = file // it is missing, or the link leads to a file that is: both are created
		}
		lock := flock.New(lockFile(real), flock.SetPermissions(0o600))
		if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
			return "", nil, fmt.Errorf("cannot lock %q: %w", file, err)
		}
		if isStill(lock) {
			return real, lock.Unlock, nil
		}
		if err := lock.Unlock(); err != nil {
			return "", nil, fmt.Errorf("cannot lock %q: %w", file, err)
		}
	}
}

// isStill reports whether the locked file is still the one at its path. One that was
// replaced while we waited for the lock (rewriteKnownHosts) locks nothing any more.
func isStill(lock *flock.Flock) bool {
	locked, err := lock.Stat()
	there, errThere := os.Stat(lock.Path())
	return err == nil && errThere == nil && os.SameFile(locked, there)
}

// lockFile is the file itself, but one of its own on Windows, where a lock on the file
// would block our own write.
func lockFile(file string) string {
	if runtime.GOOS == "windows" {
		return file + ".lock"
	}
	return file
}

// checkWritable returns an error for what cannot be written to as a known_hosts file: to open a
// FIFO may block for ever. To append a key to a device such as /dev/null does no harm.
func checkWritable(file string) error {
	if info, err := os.Stat(file); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return errors.New("it is a FIFO")
	}
	return nil
}

// checkReplaceable returns an error for what must not become a regular file: root may replace
// a device, such as the /dev/null that others use, too. file may be a symbolic link.
func checkReplaceable(file string) error {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	return nil
}
