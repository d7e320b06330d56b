package share

import (
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const saidSuffix = ".said"

// Once reports whether no process of the user's was told so in the time that
// every is, for this target. It is false also where that cannot be found out:
// what is not said is less of a nuisance than what is said by ten.
func (d *Dir) Once(id string, every time.Duration) bool {
	if !idForm.MatchString(id) {
		return false
	}
	file, err := d.files.Append(id + saidSuffix)
	if err != nil {
		return false
	}
	defer file.Close()
	lock := flock.New(filepath.Join(d.files.Path(), id+saidSuffix+lockSuffix), flock.SetPermissions(0o600))
	if got, err := lock.TryLock(); err != nil || !got {
		return false // another is saying it
	}
	defer func() { _ = lock.Close() }()
	info, err := file.Stat()
	if err != nil || info.Size() > 0 && time.Since(info.ModTime()).Abs() < every {
		return false
	}
	if file.Truncate(0) != nil {
		return false
	}
	_, err = file.WriteString("said\n")
	return err == nil
}
