package sshfwd

import (
	"crypto/sha1"
	"encoding/hex"
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

// setAuth sets what is about keys beyond their files.
func (c *Config) setAuth(s settings) error {
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

// forwardedAgent is the socket of the agent that ForwardAgent forwards: the one
// it names, else the one that we use ourselves. It is "" where there is none.
func (c *Config) forwardedAgent() string {
	switch name, isVariable := strings.CutPrefix(c.ForwardAgentSocket, "$"); {
	case isVariable:
		return os.Getenv(name)
	case c.ForwardAgentSocket != "":
		return c.ForwardAgentSocket
	}
	return c.agentSocket()
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
		return KeysToAgent{}, &ConfigError{
			Problem: fmt.Sprintf("bad value %q for AddKeysToAgent", value),
			Advice:  "write yes, no, ask, confirm or a time such as 1h, see ssh_config(5)",
		}
	}
	return k, nil
}

// parseTime reads the TIME FORMATS of sshd_config(5), such as 90, 10m or 1h30m.
// What is none is 0.
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

// connectionHash is the token %C: ssh_connection_hash in OpenSSH's readconf.c.
// Since OpenSSH 9.6 it also covers ProxyJump; the two agree where there is none,
// and where there is one we cannot know which is meant.
func (c *Config) connectionHash() (string, error) {
	if c.ProxyJump != "" {
		return "", fmt.Errorf("with ProxyJump, %%C depends on the version of ssh")
	}
	host, err := os.Hostname()
	sum := sha1.Sum([]byte(host + c.Hostname + strconv.Itoa(c.Port) + c.User))
	return hex.EncodeToString(sum[:]), err
}
