package share

import (
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const claimSuffix = ".said"

// Claim reports whether id was last claimed more than every ago, by any process of the
// user's, and claims it. It is how only one of several processes tells the user something,
// so it is false if that cannot be found out: better to tell nothing than to tell it ten
// times.
func (d *Dir) Claim(id string, every time.Duration) bool {
	if !idForm.MatchString(id) {
		return false
	}
	files, err := d.current()
	if err != nil {
		return false
	}
	file, err := files.Append(id + claimSuffix)
	if err != nil {
		return false
	}
	defer file.Close()
	lock := flock.New(filepath.Join(d.path, id+claimSuffix+lockSuffix), flock.SetPermissions(0o600))
	if got, err := lock.TryLock(); err != nil || !got {
		return false // another process is claiming it
	}
	defer func() { _ = lock.Close() }()
	info, err := file.Stat()
	if err != nil || info.Size() > 0 && time.Since(info.ModTime()).Abs() < every {
		return false
	}
	if files.Empty(id+claimSuffix) != nil {
		return false
	}
	_, err = file.WriteString("said\n")
	return err == nil
}
