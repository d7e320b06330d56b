package config

import "strings"

// safeInCommand reports whether cmd.exe, which may run the command or be reached through
// a batch file, expands nothing in a name.
func safeInCommand(name string) bool { return !strings.ContainsAny(name, `"%^!`) }
