//go:build !windows

package private

// checkPipe is needed on Windows only, where a connection with an Fd is a pipe.
func checkPipe(uintptr) error { return nil }
