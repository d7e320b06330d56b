//go:build unix

package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidNames(t *testing.T) {
	for _, o := range []Options{
		To("web"), To("web_1.example.com"), To("::1"), To("fe80::1%eth0"), To("ssh://me@[::1]:22"),
		To("me@web"), To(`CORP\me@web`), To("a$b@web"), To("web", "-l", "me+x@corp"), To("ssh://a%20b@web"),
		To("web", "-o", "User=me", "-o", "ProxyCommand=a;b"),
	} {
		require.NoError(t, o.check(), o)
	}
	for _, o := range []Options{
		To("we'b"), To("we`b"), To(`we"b`), To("we$b"), To(`we\b`), To("we;b"),
		To("we&b"), To("a<b"), To("a>b"), To("a|b"), To("a(b"), To("a{b"), To("a,b"),
		To("x@-web"), To("x@"), To("ssh://"), To("a;b@web"), To("web", "-l", "-x"), To("web", "-l", "a -x"),
		To("web", "-l", `me\`), To("web", "-l", "a\x01"), To("ssh://a%3bb@web"), To("web", "-o", " user = a;b"),
	} {
		require.Error(t, o.check(), o)
	}
}
