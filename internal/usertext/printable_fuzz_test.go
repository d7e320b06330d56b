package usertext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzPrintable: what is shown of a server's text is printable, keeps all that was
// printable, and is at most four times as long.
func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"plain\ttext\n", "\x1b]0;title\x07\u202eevil\u009b2J\xff\r\n\r", "é漢字\u00ad\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, shown := range []string{Printable(text), Line(text)} {
			require.True(t, utf8.ValidString(shown))
			for _, r := range shown {
				require.True(t, unicode.IsPrint(r) || r == '\n' || r == '\t', "%q of %q", shown, text)
			}
			require.LessOrEqual(t, len(shown), 4*len(text))
		}
		require.NotContains(t, Line(text), "\n")
		if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(text) {
			require.Equal(t, text, Line(text))
		}
	})
}
