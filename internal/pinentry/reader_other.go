//go:build !linux && !darwin

package pinentry

// Readers returns ErrUnknown.
func Readers() ([]Reader, error) { return nil, ErrUnknown }
