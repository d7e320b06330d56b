package config

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// setControl sets where ssh shares its connections. Only ssh -G replaces the tokens in
// ControlPath, so without ssh the keywords are not read (fallbackKeys).
func (c *Config) setControl(s Settings) {
	c.ControlPath = s.Text("controlpath")
	// A relative one, such as Emacs' tramp.%C, is one of this directory, whoever uses it where.
	if path, err := filepath.Abs(c.ControlPath); err == nil && c.ControlPath != "" {
		c.ControlPath = path
	}
	switch s.get("controlmaster") {
	case "yes", "true", "auto", "ask", "autoask":
		c.ControlMaster = c.ControlPath != ""
	}
	c.ControlAsks = c.ControlMaster && strings.HasSuffix(s.get("controlmaster"), "ask")
	c.ControlPersists = s.get("controlpersist") != "" && !isNo(s.get("controlpersist"))
	seconds, err := strconv.Atoi(s.get("controlpersist")) // anything but a number: for ever, or not at all
	if err == nil && seconds > 0 && seconds <= math.MaxInt32 {
		c.ControlPersist = time.Duration(seconds) * time.Second
	}
}
