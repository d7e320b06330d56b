package atomicfile

import (
	"io/fs"
	"os"
)

// makeLike has nothing to do: the file inherits the access rights of its directory, as the
// other one did.
func makeLike(*os.File, fs.FileInfo) error { return nil }
