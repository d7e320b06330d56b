package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gpg-bridge/internal/private"
	"gpg-bridge/internal/proc"
)

// programPath returns the path by which other programs are to call this one. It is
// absolute, since their PATH is another (cron's, a desktop's), and leads to the next
// version, too.
func programPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return stablePath(self, os.Args[0], os.Getenv("PATH")), nil
}

// stablePath chooses among the paths that lead to self, which may be that of one version
// (/proc/self/exe is). Those in PATH come first, then the one by which the
// program was called; a path that another user could exchange is never chosen. A symbolic
// link is best, since a package manager will make it lead to the next version.
func stablePath(self, called, path string) string {
	var found []string
	for _, candidate := range namesOf(called, path) {
		if proc.SameFile(candidate, self) && private.CheckPlace(candidate) == nil {
			found = append(found, candidate)
		}
	}
	for _, candidate := range found {
		if info, err := os.Lstat(candidate); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return candidate
		}
	}
	return append(found, self)[0]
}

// namesOf lists the absolute paths that this program may have.
func namesOf(called, path string) []string {
	name := "gpg-bridge"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	var all []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			all = append(all, filepath.Join(dir, name), filepath.Join(dir, filepath.Base(called)))
		}
	}
	if strings.ContainsAny(called, "/"+string(filepath.Separator)) {
		if full, err := filepath.Abs(called); err == nil {
			all = append(all, full)
		}
	}
	return all
}
