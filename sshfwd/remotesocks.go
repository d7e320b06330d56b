package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errNotPermitted: the host asked for what PermitRemoteOpen leaves out.
var errNotPermitted = errors.New("not among PermitRemoteOpen")

// permits reports whether the host may connect to target through this side's
// SOCKS proxy: names are compared as they are written (open_match in
// channels.c).
func (s ForwardSpecs) permits(target Endpoint) bool {
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

// parsePermitRemoteOpen reads the value of ssh_config's PermitRemoteOpen; the
// result is that of ForwardSpecs.
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
	return &ConfigError{
		Problem: fmt.Sprintf("bad PermitRemoteOpen %q", word),
		Advice:  "write host:port, where either may be *, or any, or none",
	}
}

// serveSocks lets the host connect to where it wants from this side: a
// RemoteForward without a target (ssh(1), -R). ssh says that it is connected
// before it tries; here the answer is the truth.
func (f *portForwards) serveSocks(conn *channelConn) {
	end := func() {
		_ = conn.Close()
		<-conn.done
	}
	stop := context.AfterFunc(f.ctx, func() { _ = conn.Close() })
	defer stop()
	late := time.AfterFunc(socksTime, func() { _ = conn.Close() })
	target, answer, err := readSocks(conn)
	if late.Stop(); err != nil {
		f.client.log.Debug("refused a SOCKS client", "error", err)
		end()
		return
	}
	if !f.specs.permits(target) {
		_ = answer(false)
		f.failed(fmt.Errorf("connect to %q for the host: %w", target, errNotPermitted))
		end()
		return
	}
	sock, err := f.dial(target)
	if err != nil {
		_ = answer(false)
		f.failed(err)
		end()
		return
	}
	if answer(true) != nil {
		_ = sock.Close()
		end()
		return
	}
	splice(f.ctx, sock, conn)
}
