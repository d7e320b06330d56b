package agentside

import "io/fs"

const openFlags = 0

// checkSecret has nothing to look at: the file lies in the user's profile and
// inherits its access list, libassuan sets none of its own, and the mode that
// Go makes up for it says nothing.
func checkSecret(fs.FileInfo) error { return nil }
