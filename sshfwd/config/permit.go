package config

import (
	"fmt"
	"strings"
)

// Permits reports whether the host may connect to target through the SOCKS proxy of this
// side. Names are compared as they are written (open_match in channels.c).
func (s Forwards) Permits(target Endpoint) bool {
	if s.PermitRemoteOpen == nil {
		return true
	}
	for _, permitted := range s.PermitRemoteOpen {
		if (permitted.Host == "*" || permitted.Host == target.Host) && (permitted.Port == 0 || permitted.Port == target.Port) {
			return true
		}
	}
	return false
}

// parsePermitRemoteOpen reads a value of PermitRemoteOpen into what
// Forwards.PermitRemoteOpen holds.
func parsePermitRemoteOpen(value string) ([]Endpoint, error) {
	words := strings.Fields(value)
	switch {
	case len(words) == 0, len(words) == 1 && words[0] == "any":
		return nil, nil
	case len(words) == 1 && words[0] == "none":
		return []Endpoint{}, nil
	}
	var permitted []Endpoint
	for _, word := range words {
		fields, ok := forwardFields(word)
		if !ok || len(fields) != 2 || fields[0].text == "" {
			return nil, badPermitRemoteOpen(word)
		}
		port, ok := parsePort(fields[1].text)
		if isAny := fields[1].text == "*"; !isAny && (!ok || port == 0) {
			return nil, badPermitRemoteOpen(word)
		}
		permitted = append(permitted, Endpoint{Host: fields[0].text, Port: port})
	}
	return permitted, nil
}

func badPermitRemoteOpen(word string) error {
	return &Error{
		Problem: fmt.Sprintf("bad PermitRemoteOpen %q", word),
		Advice:  "write host:port, where either may be *, or any, or none",
	}
}
