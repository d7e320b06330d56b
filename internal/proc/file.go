package proc

import "os"

// SameFile reports whether two paths lead to the same existing file.
func SameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
