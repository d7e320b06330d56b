package target

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// A port is a number, or a service's name, as for ssh (a2port in OpenSSH's misc.c).
type port int

// String returns "0" for what ssh_config says.
func (p *port) String() string { return strconv.Itoa(int(*p)) }

// Type is for the help.
func (p *port) Type() string { return "string" }

// Set is [pflag.Value]'s.
func (p *port) Set(text string) error {
	number, err := net.LookupPort("tcp", text)
	if err != nil || number < 1 {
		return errors.New("a port is a number from 1 to 65535, or the name of a service")
	}
	*p = port(number)
	return nil
}

// A list grows with each flag of its name, and, unlike pflag's own, keeps what other flags
// have put there before: -a and -e are options of ssh_config, too.
type list []string

var _ pflag.SliceValue = (*list)(nil)

// String is "" for none.
func (l *list) String() string { return strings.Join(*l, ",") }

// Type is for the help.
func (l *list) Type() string { return "stringArray" }

// Set appends.
func (l *list) Set(value string) error { return l.Append(value) }

// Append is [pflag.SliceValue]'s.
func (l *list) Append(value string) error {
	*l = append(slices.Clip(*l), value)
	return nil
}

// Replace is [pflag.SliceValue]'s.
func (l *list) Replace(values []string) error {
	*l = slices.Clone(values)
	return nil
}

// GetSlice is [pflag.SliceValue]'s.
func (l *list) GetSlice() []string { return *l }
