//go:build unix

package private

import (
	"os"
	"path/filepath"
	"strconv"
)

func runtimePath(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() && checkPrivate(info, dir) == nil {
			return filepath.Join(dir, directory), nil
		}
	}
	return filepath.Join(os.TempDir(), directory+"-"+strconv.Itoa(os.Geteuid())), nil
}
