package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// program is the path of gpg-bridge; TestMain builds it before any test runs.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("/tmp", "gbe")
	if err == nil {
		program = filepath.Join(dir, "gpg-bridge")
		err = errors.Join(os.Chmod(dir, 0o755), build(program)) // accounts of a test run it, too
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: cannot build gpg-bridge:", err)
		_ = os.RemoveAll(dir)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func build(output string) error {
	args := []string{"build", "-o", output}
	if raceDetector {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "gpg-bridge/cmd/gpg-bridge")...)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
