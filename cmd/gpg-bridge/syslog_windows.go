package main

import (
	"io"

	"gpg-bridge/internal/usertext"
)

func openSyslog() (io.Writer, error) {
	return nil, usertext.WithHint("there is no syslog on Windows", "use -E FILE instead of -y")
}
