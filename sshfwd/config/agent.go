package config

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// KeysToAgent is AddKeysToAgent (ssh_config(5)): whether and how a key that was
// read from a file is given to the ssh-agent.
type KeysToAgent struct {
	Add      bool
	Ask      bool          // the user is asked before, through SSH_ASKPASS
	Confirm  bool          // the agent asks before each use
	Lifetime time.Duration // 0 for ever
}

// setAgent sets AddKeysToAgent and ForwardAgent.
func (c *Config) setAgent(s Settings) error {
	var err error
	if c.AddKeysToAgent, err = parseKeysToAgent(s.get("addkeystoagent")); err != nil {
		return err
	}
	return c.setForwardAgent(s.get("forwardagent"))
}

// setForwardAgent reads yes, no, the path of a socket or $NAME.
func (c *Config) setForwardAgent(value string) (err error) {
	switch strings.ToLower(value) {
	case "", "no", "false":
	case "yes", "true":
		c.ForwardAgent = true
	default:
		c.ForwardAgent = true
		if c.ForwardAgentSocket = value; !strings.HasPrefix(value, "$") || strings.HasPrefix(value, "${") {
			c.ForwardAgentSocket, err = c.expandPath(value)
		}
	}
	return err
}

// AgentSocket is the socket of the ssh-agent to use, "" for none: IdentityAgent
// (ssh_config(5)), or else SSH_AUTH_SOCK.
func (c *Config) AgentSocket() string {
	switch setting := c.IdentityAgent; {
	case strings.EqualFold(setting, "none"):
		return ""
	case setting == "" || setting == "SSH_AUTH_SOCK":
		if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
			return socket
		}
		return defaultAgent
	case strings.HasPrefix(setting, "$"):
		return os.Getenv(strings.Trim(setting[1:], "{}"))
	default:
		return setting
	}
}

// ForwardedAgent is the socket of the agent that ForwardAgent forwards, "" for none: the
// one that it names, or else the one that we use ourselves.
func (c *Config) ForwardedAgent() string {
	switch name, isVariable := strings.CutPrefix(c.ForwardAgentSocket, "$"); {
	case isVariable:
		return os.Getenv(name)
	case c.ForwardAgentSocket != "":
		return c.ForwardAgentSocket
	}
	return c.AgentSocket()
}

// parseKeysToAgent reads ssh_config's notation and that of ssh -G: no, yes, ask,
// confirm, a time, or confirm and a time.
func parseKeysToAgent(value string) (KeysToAgent, error) {
	words := strings.Fields(strings.ToLower(value))
	switch {
	case len(words) == 0 || len(words) == 1 && (words[0] == "no" || words[0] == "false"):
		return KeysToAgent{}, nil
	case len(words) == 1 && (words[0] == "yes" || words[0] == "true"):
		return KeysToAgent{Add: true}, nil
	case len(words) == 1 && words[0] == "ask":
		return KeysToAgent{Add: true, Ask: true}, nil
	}
	k := KeysToAgent{Add: true, Confirm: words[0] == "confirm"}
	if k.Confirm {
		words = words[1:]
	}
	if len(words) > 0 {
		k.Lifetime = parseTime(words[0])
	}
	if len(words) > 1 || len(words) == 1 && k.Lifetime <= 0 {
		return KeysToAgent{}, &Error{
			Problem: fmt.Sprintf("bad value %q for AddKeysToAgent", value),
			Advice:  "write yes, no, ask, confirm or a time such as 1h, see ssh_config(5)",
		}
	}
	return k, nil
}

// parseTime reads the TIME FORMATS of sshd_config(5), such as 90, 10m or 1h30m.
// Anything else gives 0.
func parseTime(text string) time.Duration {
	units := map[byte]time.Duration{
		's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour,
	}
	var total time.Duration
	for text != "" {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		n, err := strconv.ParseUint(text[:digits], 10, 31)
		if err != nil {
			return 0
		}
		unit := time.Second
		if text = text[digits:]; text != "" {
			unit = units[text[0]]
			text = text[1:]
		}
		if unit == 0 || total+time.Duration(n)*unit > 1<<31*time.Second {
			return 0
		}
		total += time.Duration(n) * unit
	}
	return total
}
