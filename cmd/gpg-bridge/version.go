package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/ui"
)

// version is the version of the source. A build from a tag says more: see
// revision.
const version = "0.1.0"

func newVersion(user *ui.UI) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  exactArgs(0),
		RunE: func(*cobra.Command, []string) error {
			return user.Print(fmt.Sprintf("gpg-bridge %s%s %s %s/%s\n", version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
		},
	}
}

// revision returns the commit that the toolchain recorded, if it did.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return " (" + setting.Value[:12] + ")"
		}
	}
	return ""
}
