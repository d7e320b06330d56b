package signals

import "os"

// DieOf returns: no process ends by a signal here.
func DieOf(os.Signal) {}
