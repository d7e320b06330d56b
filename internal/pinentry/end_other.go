//go:build !linux

package pinentry

import "context"

// End returns ErrUnknown.
func (p Process) End(context.Context) error { return ErrUnknown }
