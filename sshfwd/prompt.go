package sshfwd

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Prompter asks the user on behalf of a connection that is being made. What
// it is given is already safe for a terminal (Printable). It must return when
// ctx is done. It is never asked in BatchMode.
type Prompter interface {
	// AskSecret shows the prompt and reads one line without echo. The caller
	// wipes the answer. An error ends the log-in.
	AskSecret(ctx context.Context, prompt string) ([]byte, error)
	// Ask shows the text and reads one line with echo.
	Ask(ctx context.Context, text string) (string, error)
	// Confirm asks for a permission that only a dialog can give, such as that
	// of SSH_ASKPASS (ask_permission in OpenSSH's readpass.c): where there is
	// none, the answer is no.
	Confirm(ctx context.Context, question string) bool
	// Notice shows text, one or more lines, and does not wait.
	Notice(text string)
}

// Printable makes text from elsewhere safe for a terminal: what is not a
// printable character, a line feed or a tab becomes \xNN, byte by byte. That
// includes escape sequences, C1 controls, invalid UTF-8 and the characters that
// turn the direction of text. CRLF becomes LF.
func Printable(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return escape(s, func(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) })
}

// printableLine is Printable for what must stay one line.
func printableLine(s string) string { return escape(s, unicode.IsPrint) }

// maxQuoted is how much of a text of the server's stands in an error: it may be
// as long as a packet.
const maxQuoted = 300

// quoted is printableLine for a text of the server's in an error.
func quoted(s string) string {
	if len(s) > maxQuoted {
		return printableLine(s[:maxQuoted]) + "…"
	}
	return printableLine(s)
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

// wipe overwrites a secret that is no longer needed.
func wipe(secret []byte) { clear(secret) }
