package config

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// socksTarget is the host that ssh -G prints for a RemoteForward without a
// target: the server's side would get a SOCKS proxy.
const socksTarget = "socks"

// defaultBindMask is StreamLocalBindMask's default (ssh_config(5)): nobody but
// the user may connect.
const defaultBindMask fs.FileMode = 0o177

// An Endpoint is one end of a forward: a Unix socket, or a TCP address.
type Endpoint struct {
	Path string // of a Unix socket, absolute; the rest is then empty

	// Host is a name or an address without brackets. Of an endpoint to listen at, ""
	// means that none was given, and "*" every interface.
	Host string
	Port int
}

func (e Endpoint) String() string {
	switch {
	case e.Path != "":
		return e.Path
	case e.Host == "":
		return strconv.Itoa(e.Port)
	}
	return fmt.Sprintf("[%s]:%d", e.Host, e.Port)
}

// A ForwardSpec is one forward, as LocalForward, RemoteForward or
// DynamicForward describe it. Connect is empty for the last, and for a
// RemoteForward without a target: there is a SOCKS proxy then.
type ForwardSpec struct {
	Listen, Connect Endpoint
}

// IsSocks reports whether each client names its own target.
func (s ForwardSpec) IsSocks() bool { return s.Connect == Endpoint{} }

// Target is where the forward leads to, as ssh's messages put it.
func (s ForwardSpec) Target() string {
	switch {
	case s.IsSocks():
		return socksTarget + ":0"
	case s.Connect.Path != "":
		return s.Connect.Path
	}
	return fmt.Sprintf("%s:%d", s.Connect.Host, s.Connect.Port)
}

// Forwards are all forwards of a destination, and the options about them,
// under ssh_config's names.
type Forwards struct {
	Local, Remote, Dynamic []ForwardSpec

	GatewayPorts          bool        // listen on every interface where no address is given
	StreamLocalBindMask   fs.FileMode // the bits that a local socket's mode must not have
	StreamLocalBindUnlink bool        // remove what is at a local socket's path first

	// PermitRemoteOpen is where a RemoteForward without a target may connect
	// to, nil for anywhere. A Host "*" and a Port 0 are any.
	PermitRemoteOpen []Endpoint
}

// IsEmpty reports whether nothing is to be forwarded.
func (s Forwards) IsEmpty() bool { return len(s.Local)+len(s.Remote)+len(s.Dynamic) == 0 }

// setForwards reads the forwards and their options, in the notation of ssh -G, of
// ssh_config or of a flag.
func (c *Config) setForwards(s Settings) error {
	f := &c.Forwards
	f.GatewayPorts, f.StreamLocalBindUnlink = s.On("gatewayports", false), s.On("streamlocalbindunlink", false)
	f.StreamLocalBindMask = defaultBindMask
	if v := s.get("streamlocalbindmask"); v != "" {
		mask, err := strconv.ParseUint(v, 8, 16)
		if err != nil || mask > 0o777 {
			return &Error{Problem: fmt.Sprintf("bad StreamLocalBindMask %q", v), Advice: "write an octal mode, such as 0177"}
		}
		f.StreamLocalBindMask = fs.FileMode(mask)
	}
	var err error
	if f.PermitRemoteOpen, err = parsePermitRemoteOpen(s.get("permitremoteopen")); err != nil {
		return err
	}
	if s.On("clearallforwardings", false) {
		return nil
	}
	for _, kind := range []struct {
		keyword string
		to      *[]ForwardSpec
	}{{"LocalForward", &f.Local}, {"RemoteForward", &f.Remote}, {"DynamicForward", &f.Dynamic}} {
		for _, value := range s[strings.ToLower(kind.keyword)] {
			spec, err := ParseForward(kind.keyword, value)
			if err != nil {
				return err
			}
			*kind.to = append(*kind.to, spec)
		}
	}
	f.Dynamic = slices.DeleteFunc(f.Dynamic, f.repeatsLocal)
	return nil
}

// repeatsLocal reports whether a DynamicForward is really a LocalForward to a Unix socket:
// ssh -G prints those under both keywords (dump_cfg_forwards in readconf.c takes a
// forward without a host for a dynamic one).
func (s Forwards) repeatsLocal(dynamic ForwardSpec) bool {
	return slices.ContainsFunc(s.Local, func(local ForwardSpec) bool {
		return local.Connect.Path != "" && local.Listen == dynamic.Listen
	})
}

// ParseForward reads one specification: of a flag ("8080:host:80"), of
// ssh_config ("8080 host:80") or of ssh -G ("8080 [host]:80"). The rules are
// those of parse_forward in readconf.c.
func ParseForward(keyword, value string) (ForwardSpec, error) {
	bad := &Error{
		Problem: fmt.Sprintf("bad %s %q", keyword, value),
		Advice:  "write [address:]port:host:hostport, with an absolute path for a Unix socket; see ssh(1)",
	}
	fields, ok := forwardFields(strings.Join(strings.Fields(value), ":"))
	if !ok {
		return ForwardSpec{}, bad
	}
	listen, fields, ok := takeEndpoint(fields, keyword == "DynamicForward")
	if !ok || (listen.Path == "" && listen.Port == 0 && keyword != "RemoteForward") {
		return ForwardSpec{}, bad
	}
	if keyword == "DynamicForward" || (keyword == "RemoteForward" && len(fields) == 0) {
		fields = append(fields, forwardField{text: socksTarget}, forwardField{text: "0"})
	}
	connect, rest, ok := takeEndpoint(fields, true)
	switch isSocks := connect.Host == socksTarget && connect.Port == 0; {
	case !ok || len(rest) > 0:
		return ForwardSpec{}, bad
	case isSocks && keyword != "LocalForward":
		return ForwardSpec{Listen: listen}, nil
	case connect.Path == "" && (connect.Port == 0 || connect.Host == ""):
		return ForwardSpec{}, bad
	}
	return ForwardSpec{Listen: listen, Connect: connect}, nil
}

// A forwardField is the text between two colons.
type forwardField struct {
	text   string
	isPath bool
}

// forwardFields splits at colons that are not in brackets (parse_fwd_field).
// A field that begins with a slash is a path; a colon in it has a backslash.
func forwardFields(s string) (fields []forwardField, ok bool) {
	for more := true; more; {
		var text string
		if inner, bracketed := strings.CutPrefix(s, "["); bracketed {
			var closed bool
			if text, s, closed = strings.Cut(inner, "]"); !closed || (s != "" && s[0] != ':') {
				return nil, false
			}
			s, more = strings.CutPrefix(s, ":")
			fields = append(fields, forwardField{text, strings.HasPrefix(text, "/")})
			continue
		}
		end := 0
		for end < len(s) && s[end] != ':' {
			if s[end] == '\\' && end+1 < len(s) {
				end++
			}
			end++
		}
		text = strings.ReplaceAll(s[:end], `\:`, ":")
		more = end < len(s)
		s = strings.TrimPrefix(s[end:], ":")
		fields = append(fields, forwardField{text, strings.HasPrefix(text, "/")})
	}
	return fields, len(fields) <= 4
}

// takeEndpoint takes a path, a port, or a host and a port off the front of fields. Where
// the last two cannot be told apart, a bare port is meant, unless all fields belong to
// this endpoint.
func takeEndpoint(fields []forwardField, all bool) (Endpoint, []forwardField, bool) {
	if len(fields) == 0 {
		return Endpoint{}, nil, false
	}
	if fields[0].isPath {
		return Endpoint{Path: fields[0].text}, fields[1:], true
	}
	hasHost := len(fields) == 4 || (len(fields) == 2 && (all || !fields[1].isPath)) || (len(fields) == 3 && fields[2].isPath)
	if !hasHost {
		port, ok := parsePort(fields[0].text)
		return Endpoint{Port: port}, fields[1:], ok
	}
	port, ok := parsePort(fields[1].text)
	host := fields[0].text
	if host == "" {
		host = "*"
	}
	return Endpoint{Host: host, Port: port}, fields[2:], ok
}

func parsePort(s string) (int, bool) {
	port, err := strconv.ParseUint(s, 10, 16)
	return int(port), err == nil
}
