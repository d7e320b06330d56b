//go:build !linux

package wan

import (
	"errors"
	"time"
)

// The ends' addresses, each in its own namespace.
const (
	ServerAddr = "10.99.0.2"
	ClientAddr = "10.99.0.1"
)

// A Link is two namespaces and what lies between them.
type Link struct{}

// New fails: namespaces are Linux's.
func New(time.Duration) (*Link, error) {
	return nil, errors.New("wan: needs Linux, for its network namespaces")
}

// Close does nothing.
func (l *Link) Close() error { return nil }

// InServer and InClient return no words.
func (l *Link) InServer() []string { return nil }

// InClient is InServer for the other end.
func (l *Link) InClient() []string { return nil }
