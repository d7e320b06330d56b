package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"gpg-bridge/internal/sshflags"
)

// settings are the flags and the destination as ssh_config keywords (main in OpenSSH's ssh.c).
func (o Options) settings() (Settings, error) {
	s := Settings{"host": {o.host()}}
	if o.BatchMode {
		s.setFirst("batchmode", "yes")
	}
	line := o.line()
	for _, given := range line.BeforeDestination() {
		if err := s.setFlag(given); err != nil {
			return nil, err
		}
	}
	s.setDestination(o.Destination)
	for _, given := range line.BehindDestination() {
		if err := s.setFlag(given); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// setFirst is for what counts only if nothing was said before.
func (s Settings) setFirst(key, value string) {
	if len(s[key]) == 0 {
		s[key] = []string{value}
	}
}

// setDestination sets what the destination says of the user and the port.
func (s Settings) setDestination(destination string) {
	rest, isURI := strings.CutPrefix(destination, "ssh://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		s.setFirst("user", rest[:i])
		rest = rest[i+1:]
	}
	if _, port, ok := strings.Cut(rest[strings.LastIndexByte(rest, ']')+1:], ":"); isURI && ok {
		s.setFirst("port", strings.TrimSuffix(port, "/"))
	}
}

// setFlag sets what a flag says.
func (s Settings) setFlag(given sshflags.Given) error {
	key, value, fixed := strings.Cut(strings.ToLower(given.Flag.Option), "=")
	if !fixed {
		value = given.Value
	}
	switch {
	case given.Flag.Letter == 'o':
		return s.setOption(value)
	case given.Flag.Letter == 't' && slices.Equal(s[key], []string{"yes"}):
		value = "force"
	case given.Flag.Letter == 'N':
		s["requesttty"] = []string{"no"}
	case given.Flag.Letter == 'f':
		s["stdinnull"] = []string{"yes"}
	case given.Flag.Letter == 'p':
		port, err := net.LookupPort("tcp", value) // which may be a service's name
		if err != nil {
			return &Error{Problem: fmt.Sprintf("bad port %q", value), Advice: "a port is a number from 1 to 65535"}
		}
		value = strconv.Itoa(port)
	}
	switch {
	case key == "":
	case given.Flag.Many:
		s[key] = append(s[key], value)
	case given.Flag.First:
		s.setFirst(key, value)
	default:
		s[key] = []string{value}
	}
	return nil
}

func (s Settings) setOption(option string) error {
	i := strings.IndexAny(option, "= \t")
	if i <= 0 {
		return &Error{Problem: fmt.Sprintf("bad option %q", option), Advice: "write -o Keyword=value"}
	}
	key, value := strings.ToLower(option[:i]), strings.Trim(option[i:], "= \t")
	if slices.Contains(manyKeys(), key) {
		s[key] = append(s[key], value)
		return nil
	}
	s.setFirst(key, value)
	return nil
}
