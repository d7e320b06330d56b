//go:build !linux

package proc

import (
	"context"
	"os"
)

func openHandle(int) *os.File { return nil }

func waitReadable(context.Context, *os.File) bool { return false }
