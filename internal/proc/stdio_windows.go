package proc

import "os"

// IsSocketPair is always false: there is no ProxyUseFdpass on Windows.
func IsSocketPair(_, _ *os.File) bool { return false }

// AwaitInput is only needed where IsSocketPair may be true.
func AwaitInput(*os.File) bool { return true }
