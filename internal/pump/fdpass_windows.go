package pump

import (
	"errors"
	"net"
	"os"
)

// IsSocketPair: there is no ProxyUseFdpass on Windows.
func IsSocketPair(_, _ *os.File) bool { return false }

// Talks is for systems where IsSocketPair may be true.
func Talks(*os.File) bool { return true }

// Pass is for systems where a socket can be handed over.
func Pass(*os.File, *net.TCPConn) error { return errors.ErrUnsupported }
