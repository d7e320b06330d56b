package sshfwd

import (
	"math"
	"strconv"
	"time"
)

// setControl sets what says where ssh shares its connections. Only ssh -G tells
// it with the tokens replaced.
func (c *Config) setControl(s settings) {
	c.ControlPath = s.text("controlpath")
	switch s.get("controlmaster") {
	case "yes", "true", "auto", "ask", "autoask":
		c.ControlMaster = c.ControlPath != ""
	}
	seconds, err := strconv.Atoi(s.get("controlpersist")) // else a word: for ever, or not at all
	if err == nil && seconds > 0 && seconds <= math.MaxInt32 {
		c.ControlPersist = time.Duration(seconds) * time.Second
	}
}
