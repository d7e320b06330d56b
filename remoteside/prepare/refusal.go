package prepare

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// A Refusal is a reason why sshd refuses to listen at a path. sshd itself does not say:
// the failure of a global request has no reason (RFC 4254 section 4).
type Refusal uint8

// The refusals of sshd's channel_setup_fwd_listener_streamlocal and of the checks before
// it (OpenSSH channels.c, serverloop.c).
const (
	RefusedByPolicy Refusal = iota // the path is free: sshd does not allow forwards to sockets, or cannot do them
	RefusedUnknown                 // the account runs no commands, so the path could not be examined
	RefusedRelative                // the path is not absolute
	RefusedLong                    // the path is longer than a socket's can be
	RefusedNoDir                   // the directory is missing
	RefusedReadOnly                // the directory may not be written to
	RefusedExists                  // something is at the path
	RefusedIsDir                   // a directory is at the path
)

var refusals = [...]struct{ text, hint string }{
	RefusedByPolicy: {"its sshd does not allow it",
		"on the host, AllowStreamLocalForwarding must be yes and DisableForwarding no (sshd_config), and the key in authorized_keys not be restricted (restrict, no-port-forwarding); an old dropbear cannot forward to a socket at all"},
	RefusedUnknown: {"its sshd does not say why, and the account runs no commands to find out",
		"check that the directory exists and that nothing is at the path unless StreamLocalBindUnlink is yes, and that AllowStreamLocalForwarding is yes"},
	RefusedRelative: {"the path must be absolute", "give a path that begins with /; ~ and variables are not expanded"},
	RefusedLong:     {"the path is too long", "a socket's path has at most 107 bytes, 103 on macOS and the BSDs"},
	RefusedNoDir:    {"its directory is missing", "make that directory on the host, with mode 0700"},
	RefusedReadOnly: {"its directory may not be written to", "check the owner and mode of that directory on the host"},
	RefusedExists: {"something is there already",
		"remove it on the host, or set StreamLocalBindUnlink yes in its sshd_config"},
	RefusedIsDir: {"a directory is there", "move that directory away on the host"},
}

// A RefusedError says why sshd refused a forward.
type RefusedError struct {
	Path    string
	Refusal Refusal
	Err     error // why the path could not be examined; only with RefusedUnknown
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the host refused to forward %.200q: %s", e.Path, refusals[e.Refusal].text)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *RefusedError) Hint() string { return refusals[e.Refusal].hint }

// refusalBody examines the path in the order in which sshd's attempts would fail.
const refusalBody = `
dir=${sock%/*}
: "${dir:=/}"
if [ ! -d "$dir" ]; then why=nodir
elif [ ! -w "$dir" ] || [ ! -x "$dir" ]; then why=readonly
elif [ -d "$sock" ]; then why=directory
elif [ -e "$sock" ] || [ -L "$sock" ]; then why=exists
else why=free
fi
printf '\n%s %s\n' "$mark" "$why"
`

// refusalWords are the script's words for the refusals.
var refusalWords = [...]struct {
	word    string
	refusal Refusal
}{
	{"nodir", RefusedNoDir},
	{"readonly", RefusedReadOnly},
	{"directory", RefusedIsDir},
	{"exists", RefusedExists},
	{"free", RefusedByPolicy},
}

// ExplainRefusal finds out, with at most one command, why the host refused to forward
// to path. It always returns a *RefusedError.
func ExplainRefusal(ctx context.Context, host Host, path string) error {
	switch checkSocketPath(path) {
	case errPathRelative:
		return &RefusedError{Path: path, Refusal: RefusedRelative}
	case errPathLong:
		return &RefusedError{Path: path, Refusal: RefusedLong}
	case errPathControl:
		return &RefusedError{Path: path, Refusal: RefusedUnknown, Err: errPathControl}
	}
	answer := answerWriter{mark: newMarker()}
	script := strings.NewReader(compound(refusalBody, "mark="+quote(answer.mark), "sock="+quote(path)))
	err := host.Run(ctx, shellCommand, script, &answer, io.Discard)
	for _, known := range refusalWords {
		if known.word == answer.word {
			return &RefusedError{Path: path, Refusal: known.refusal}
		}
	}
	return &RefusedError{Path: path, Refusal: RefusedUnknown, Err: err}
}

// answerWriter keeps the text after the marker, of the last line that begins with it.
type answerWriter struct {
	mark string
	line []byte
	word string
}

// Write reads output of the host. It keeps one line of it, of bounded length.
func (a *answerWriter) Write(p []byte) (int, error) {
	a.line = takeLines(a.line, p, maxFirstLine, func(line string) {
		if word, ok := strings.CutPrefix(line, a.mark+" "); ok {
			a.word = word
		}
	})
	return len(p), nil
}

// takeLines calls take with each line that ends in p, and returns the beginning of the next
// one. begun is what it has returned before. Of each line the first most bytes count.
func takeLines(begun, p []byte, most int, take func(line string)) (rest []byte) {
	for _, c := range p {
		if c != '\n' {
			if len(begun) < most {
				begun = append(begun, c)
			}
			continue
		}
		take(strings.TrimSuffix(string(begun), "\r"))
		begun = begun[:0]
	}
	return begun
}
