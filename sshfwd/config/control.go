package config

import (
	"math"
	"strconv"
	"time"
)

// setControl sets where ssh shares its connections. Only ssh -G replaces the tokens in
// ControlPath, so without ssh the keywords are not read (fallbackKeys).
func (c *Config) setControl(s Settings) {
	c.ControlPath = s.Text("controlpath")
	switch s.get("controlmaster") {
	case "yes", "true", "auto", "ask", "autoask":
		c.ControlMaster = c.ControlPath != ""
	}
	seconds, err := strconv.Atoi(s.get("controlpersist")) // anything but a number: for ever, or not at all
	if err == nil && seconds > 0 && seconds <= math.MaxInt32 {
		c.ControlPersist = time.Duration(seconds) * time.Second
	}
}
