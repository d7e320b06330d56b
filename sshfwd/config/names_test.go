//go:build unix

package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidNames(t *testing.T) {
	for _, o := range []Options{
		{Destination: "web"}, {Destination: "web_1.example.com"}, {Destination: "::1"}, {Destination: "fe80::1%eth0"}, {Destination: "ssh://me@[::1]:22"},
		{Destination: "me@web"}, {Destination: `CORP\me@web`}, {Destination: "a$b@web"}, {Destination: "web", User: "me+x@corp"}, {Destination: "ssh://a%20b@web"},
		{Destination: "web", Options: []string{"User=me", "ProxyCommand=a;b"}},
	} {
		require.NoError(t, o.check(), o)
	}
	for _, o := range []Options{
		{Destination: "we'b"}, {Destination: "we`b"}, {Destination: `we"b`}, {Destination: "we$b"}, {Destination: `we\b`}, {Destination: "we;b"},
		{Destination: "we&b"}, {Destination: "a<b"}, {Destination: "a>b"}, {Destination: "a|b"}, {Destination: "a(b"}, {Destination: "a{b"}, {Destination: "a,b"},
		{Destination: "x@-web"}, {Destination: "x@"}, {Destination: "ssh://"}, {Destination: "a;b@web"}, {Destination: "web", User: "-x"}, {Destination: "web", User: "a -x"},
		{Destination: "web", User: `me\`}, {Destination: "web", User: "a\x01"}, {Destination: "ssh://a%3bb@web"}, {Destination: "web", Options: []string{" user = a;b"}},
	} {
		require.Error(t, o.check(), o)
	}
}
