package usertext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ShellWord quotes s as one word for a POSIX shell, in a command that the user may paste.
func ShellWord(s string) string {
	return "'" + strings.ReplaceAll(Line(s), "'", `'\''`) + "'"
}

// Printable makes text from elsewhere safe for a terminal: whatever is not a
// printable character, a line feed or a tab becomes \xNN, byte by byte. That
// includes escape sequences, C1 controls, invalid UTF-8 and the characters that
// change the direction of text. CRLF becomes LF.
func Printable(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return escape(s, func(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) })
}

// Line is Printable for text that must stay on one line: a line feed or tab becomes \xNN,
// too.
func Line(s string) string { return escape(s, unicode.IsPrint) }

// maxQuoted is how many bytes of a server's text an error shows: the text may be as long
// as a packet.
const maxQuoted = 300

// Quoted is Line for a server's text in an error. It is cut after 300 bytes.
func Quoted(s string) string {
	if len(s) > maxQuoted {
		return Line(s[:maxQuoted]) + "…"
	}
	return Line(s)
}

func escape(s string, keep func(rune) bool) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if keep(r) && !(r == utf8.RuneError && size == 1) {
			b.WriteString(s[:size])
		} else {
			for _, c := range []byte(s[:size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		}
		s = s[size:]
	}
	return b.String()
}
