package env

import "log/slog"

// QuietLog returns a log that discards everything.
func QuietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
