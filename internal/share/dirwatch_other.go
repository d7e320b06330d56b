//go:build !linux

package share

// A dirWatch does nothing on this system.
type dirWatch struct{ changed chan struct{} }

func newDirWatch(string) *dirWatch { return &dirWatch{} }

func (*dirWatch) follow() bool { return false }

func (*dirWatch) close() {}
