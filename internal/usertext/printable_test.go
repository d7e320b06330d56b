package usertext

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext": "plain\n\ttext",
		"a\r\nb\rc":     `a` + "\n" + `b\x0dc`,
		"\x1b[31mred":   `\x1b[31mred`,
		"\u009b31m":     `\xc2\x9b31m`,
		"é 日本":          "é 日本",
		"bad\xff\xfe":   `bad\xff\xfe`,
		"a\u202eb":      `a\xe2\x80\xaeb`,
		"\x00\x7f":      `\x00\x7f`,
		"\ufffd":        "\ufffd",
	} {
		require.Equal(t, want, Printable(in))
	}
	require.Equal(t, `a\x0ab\x09c`, Line("a\nb\tc"))
}
