package pinentry

import "os"

// Device returns 0: here no pinentry asks on a terminal.
func Device(string) uint64 { return 0 }

// DeviceOf returns 0.
func DeviceOf(*os.File) uint64 { return 0 }
