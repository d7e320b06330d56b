package terminal

// CanSuspend reports whether this system can stop a program and continue it.
const CanSuspend = false

// Suspend does nothing: a Windows console has no job control.
func Suspend() {}

// OnContinue does nothing, like Suspend.
func OnContinue(func()) (stop func()) { return func() {} }
