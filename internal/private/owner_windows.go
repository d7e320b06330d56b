package private

import "io/fs"

const openFlags = 0

// checkPrivate: fs.FileMode does not show access lists.
func checkPrivate(fs.FileInfo, string) error { return nil }

func checkAncestors(string) error { return nil }
