package agentside

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// refused reports whether nobody listens at the port. Winsock's error is not the
// one that package syscall calls ECONNREFUSED on Windows.
func refused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }

// gpgconfDirs lists where the registry says that GnuPG is installed (GnuPG's and
// Gpg4win's installers write it there, 32-bit ones into the 32-bit view), and then
// where they install it by default.
func gpgconfDirs() []string {
	var dirs []string
	for _, view := range []uint32{registry.WOW64_32KEY, registry.WOW64_64KEY} {
		if dir := installDirectory(view); dir != "" {
			dirs = append(dirs, filepath.Join(dir, "bin"))
		}
	}
	for _, name := range []string{"ProgramFiles", "ProgramFiles(x86)"} {
		if dir := os.Getenv(name); dir != "" {
			dirs = append(dirs, filepath.Join(dir, "GnuPG", "bin"))
		}
	}
	return dirs
}

func installDirectory(view uint32) string {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\GnuPG`, registry.QUERY_VALUE|view)
	if err != nil {
		return ""
	}
	defer func() { _ = key.Close() }()
	dir, _, err := key.GetStringValue("Install Directory")
	if err != nil {
		return ""
	}
	return dir
}
