package private

import (
	"errors"
	"path/filepath"
)

func runtimePath(getenv func(string) string) (string, error) {
	dir := getenv("LocalAppData")
	if dir == "" {
		return "", errors.New("%LocalAppData% is not set")
	}
	return filepath.Join(dir, directory), nil
}
