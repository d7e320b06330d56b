package private

import "io/fs"

const openFlags = 0

// checkPrivate has nothing to check: fs.FileMode does not show access lists.
func checkPrivate(fs.FileInfo, string) error { return nil }

func checkAncestors(string) error { return nil }
