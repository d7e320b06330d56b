package memory

import (
	"os"
	"path/filepath"
)

// Dir is the directory in which facts are remembered between runs, "" if there is none.
func Dir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "gpg-bridge")
}
