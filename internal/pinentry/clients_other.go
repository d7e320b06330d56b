//go:build !linux

package pinentry

// ConnectionsOf returns ErrUnknown.
func ConnectionsOf(string) (Connections, error) { return nil, ErrUnknown }
