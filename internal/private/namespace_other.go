//go:build unix && !linux

package private

func isUnmapped(int) bool { return false }
