package link

import "errors"

// Hopeless reports whether connecting again cannot help, or must not be tried: a changed host
// key, or a host that floods us, is for the user to judge. Such errors have a method of this
// name.
func Hopeless(err error) bool {
	hopeless, ok := errors.AsType[interface {
		error
		Hopeless() bool
	}](err)
	return ok && hopeless.Hopeless()
}

// NothingRan reports whether a command was refused before any part of it ran, for a reason that
// has nothing to do with the command. Such errors have a method of this name.
func NothingRan(err error) bool {
	refused, ok := errors.AsType[interface {
		error
		NothingRan() bool
	}](err)
	return ok && refused.NothingRan()
}
