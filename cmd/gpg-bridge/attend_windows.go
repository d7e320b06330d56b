package main

import (
	"github.com/spf13/cobra"

	"gpg-bridge/internal/ui"
)

// newAttend returns nil: there is no ProxyUseFdpass on Windows.
func newAttend(*ui.UI) *cobra.Command { return nil }
